#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <utility>

#include "weights/storage/weights.h"

namespace shardproof {

/// Returns these weights as those of a large model are: each is read when it is asked for, and
/// given up at once unless others leave room for it. `read` is called with each name.
inline Weights on_demand(
    const Weights& of, std::size_t room = 0,
    std::function<void(const std::string&)> read = [](const std::string&) {}) {
  std::map<std::string, Shape> shapes;
  for (const std::string& name : of.names()) shapes.emplace(name, of.shape(name));
  return {of.config(), std::move(shapes),
          [of, read = std::move(read)](const std::string& name) {
            read(name);
            return *of.at(name);
          },
          of.stored_type(), room};
}

}  // namespace shardproof
