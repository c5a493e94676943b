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

}  // namespace shardproof
