#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>

#include "oracle/walk/weights.h"

namespace shardproof {

/// Returns the function that looks weights up by their ids.
inline oracle::graph::FindWeight find_in(std::map<std::string, Tensor, std::less<>> weights) {
  return [weights = std::move(weights)](const std::string& id) {
    const auto at = weights.find(id);
    return at == weights.end() ? nullptr : std::make_shared<const Tensor>(at->second);
  };
}

}  // namespace shardproof
