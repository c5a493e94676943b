#pragma once

#include <gtest/gtest.h>

#include <string>

#include "weights/base/error.h"

namespace shardproof {

/// The label of the Error that `call` throws, "" if it throws none. Its message must be one line.
template <class Call>
std::string label_of(Call&& call) {
  try {
    call();
  } catch (const Error& error) {
    const std::string what = error.what();
    return what.find('\n') == std::string::npos ? error.label() : "more than one line: " + what;
  }
  return "";
}

/// The message of the Error that `call` throws, "" if it throws none.
template <class Call>
std::string message_of(Call&& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

/// Succeeds if `call` throws an Error with this label, of one line that has `part` in it.
template <class Call>
testing::AssertionResult refuses(Call&& call, const std::string& label, const std::string& part) {
  const std::string found = label_of(call), message = message_of(call);
  if (found == label && message.find(part) != std::string::npos) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "expected " << label << " with \"" << part
                                     << "\": " << (message.empty() ? "no error" : message);
}

}  // namespace shardproof
