#pragma once

#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "golden/compare/dim_padding.h"
#include "golden/trace/write/trace.h"
#include "weights/base/error.h"
#include "weights/hdf5/detail/writer.h"

namespace shardproof {

/// The file of a trace while it is being built (docs/trace-format.md). Throws Error("trace_c1",
/// ...) if HDF5 or the disk fails.
class TraceFile {
 public:
  TraceFile(const RunPlan& plan, std::filesystem::path target, bool weights_given);

  /// Adds the next op's output, or a program's input (`op` is null): weights, ids and caches.
  void add(const Scope& scope, const Program& program, const Op* op, const ValueDecl& declared,
           const Sharded& value);

  /// See Trace::expect.
  void expect(const std::string& id, const OracleMemo::Known& known);

  /// Writes the file; call it once.
  void write(std::string_view ended);

 private:
  struct Entry {
    std::string id;
    const Layout& layout;
    std::string meaning;  ///< empty if the id implies it
    std::string op;
    std::string dtype;
    const Sharded& value;
    std::string like;  ///< id of a value that this one may be equal to
  };

  /// The declaration of an op's output.
  struct Step {
    Scope scope;
    ValueDecl declared;
    std::string op;
    Shape shape;
    int order;
  };

  void input(const Scope& scope, const Program& program, const ValueDecl& declared,
             const Sharded& value);
  void put(const Entry& entry);
  template <class T>
  void put_chips(const Entry& entry, const ChipArrays<T>& chips);
  template <class T>
  bool put_whole(const Entry& entry, const ChipArrays<T>& chips);
  void put_partial(const Entry& entry);
  void put_field(const Entry& entry);
  template <class T>
  std::vector<std::pair<int, Hdf5Writer::Object>> put_shards(const Entry& entry,
                                                             const ChipArrays<T>& chips);
  template <class T>
  Hdf5Writer::Object create(const Hdf5Writer::Object& parent, const Entry& entry,
                            const Shape& shape, const T& data) const;

  Numerics numerics_;
  ModelConfig config_;
  DimPadding padding_;
  Hdf5Writer file_;
  std::vector<Hdf5Writer::Object> chips_;  // the chips' groups
  int order_ = 0;
  int order_of_field_ = -1;            // of the first number of the field regime; -1: none yet
  std::map<std::string, Step> steps_;  // by id
  std::set<std::string> resident_;     // weights already in the file, by layout
  std::set<std::string> of_prefixes_;  // passes over prefixes
  /// By layer and name: id of the newest cache, and of the newest cache of the prefixes.
  std::map<std::string, std::string> caches_, prefixes_;
  std::map<std::string, std::string> same_as_;                        // by id
  std::tuple<std::vector<float>, std::vector<std::int32_t>> wholes_;  // memory for whole arrays
};

}  // namespace shardproof
