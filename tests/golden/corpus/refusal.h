#pragma once

#include <string>

#include "weights/base/error.h"

namespace shardproof::corpus {

/// What an act is refused with, "nothing" if it is not.
template <class Do>
std::string refusal(Do&& act) {
  try {
    act();
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing";
}

}  // namespace shardproof::corpus
