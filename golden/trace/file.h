#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "golden/trace/trace.h"
#include "weights/error.h"
#include "weights/hdf5/writer.h"

namespace shardproof {

/// The file of a trace while it is being built (docs/trace.md). What HDF5 or the disk refuses is
/// thrown as Error("trace_c1", ...).
class TraceFile {
 public:
  TraceFile(const Case& c, const IntTensor& prompt, std::filesystem::path target,
            bool weights_given);

  /// The next op's output, chip by chip and, where it has one, its logical tensor.
  void add(const Scope& scope, const Program& program, const Op& op, const ValueDecl& declared,
           const Sharded& value);

  /// Writes the file; to be called once.
  void write(std::string_view ended);

 private:
  struct Entry {
    std::string id;
    const ValueDecl& declared;
    std::string op;
    const Sharded& value;
  };

  template <class T>
  Hdf5Writer::Object put(const Hdf5Writer::Object& parent, const Entry& entry, const Shape& shape,
                         const T& data, std::string_view dtype) const;
  template <class T>
  std::vector<Hdf5Writer::Object> put_shards(const Entry& entry, const ChipArrays<T>& chips,
                                             std::string_view dtype) const;
  template <class T>
  std::vector<T> put_complete(const Entry& entry, const ChipArrays<T>& chips,
                              std::string_view dtype) const;
  void put_partial(const Entry& entry) const;
  void keep_token(const std::string& pass, const std::vector<std::int32_t>& ids);
  void put_generated() const;

  Numerics numerics_;
  ModelConfig config_;
  Hdf5Writer file_;
  std::vector<Hdf5Writer::Object> chips_;  // their groups
  int order_ = 0;
  std::vector<std::pair<std::string, std::vector<std::int32_t>>> tokens_;  // by pass
};

}  // namespace shardproof
