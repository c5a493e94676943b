// Judges a dump of named values by gate B, for tests/golden/gate_b.py:
//
//     judge_dump WEIGHTS.h5 DUMP.h5
//
// DUMP.h5 has a dataset of f64 for each named value ("prefill.c0.layer0.gate"), int32 [BL]
// "PASS.ids", and integer attributes: batch, prompt, chunk, gen, digits (24 or 53: of sums and
// operations; 8 of values with digits 24 where `bf16` is 1), ulp (of exp), folded, wire. Prints a
// line a value: id, verdict, slack, reach. Exits 1 if any is different.
#include <fmt/format.h>
#include <hdf5.h>

#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "golden/bounds/value/replay.h"
#include "weights/storage/store.h"

namespace shardproof {
namespace {

template <class T>
Array<T> read(hid_t file, const std::string& name, hid_t type) {
  const hid_t set = H5Dopen2(file, name.c_str(), H5P_DEFAULT);
  const hid_t space = H5Dget_space(set);
  std::vector<hsize_t> extents(static_cast<std::size_t>(H5Sget_simple_extent_ndims(space)));
  H5Sget_simple_extent_dims(space, extents.data(), nullptr);
  Shape shape;
  for (const hsize_t extent : extents) shape.push_back(static_cast<std::int64_t>(extent));
  Array<T> array(shape);
  const bool ok = H5Dread(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, array.data.data()) >= 0;
  H5Sclose(space);
  H5Dclose(set);
  if (!ok) throw Error("judge_dump", name);
  return array;
}

int attribute(hid_t file, const char* name) {
  int value = 0;
  const hid_t at = H5Aopen(file, name, H5P_DEFAULT);
  if (at < 0 || H5Aread(at, H5T_NATIVE_INT, &value) < 0) throw Error("judge_dump", name);
  H5Aclose(at);
  return value;
}

int judge(const char* weights_file, const char* dump_file) {
  const Weights weights = load_weights(weights_file);
  const hid_t file = H5Fopen(dump_file, H5F_ACC_RDONLY, H5P_DEFAULT);
  if (file < 0) throw Error("judge_dump", dump_file);
  const Passes passes(attribute(file, "batch"), attribute(file, "prompt"), attribute(file, "chunk"),
                      attribute(file, "gen"));
  const NumberFormat sums = attribute(file, "digits") == 53 ? NumberFormat::f64 : NumberFormat::f32;
  bounds::DeclaredArithmetic declared{
      .values = attribute(file, "bf16") != 0 ? NumberFormat::bf16 : sums,
      .sums = sums,
      .operations = bounds::Arithmetic::of(sums, attribute(file, "ulp")),
      .folded = attribute(file, "folded"),
      .wire_roundings = attribute(file, "wire")};
  std::vector<std::string> names;
  H5Literate(
      file, H5_INDEX_NAME, H5_ITER_INC, nullptr,
      [](hid_t, const char* name, const H5L_info_t*, void* to) -> herr_t {
        static_cast<std::vector<std::string>*>(to)->emplace_back(name);
        return 0;
      },
      &names);
  std::map<std::string, IntTensor> ids;
  bounds::Replay::Dump dump;
  for (const std::string& name : names)
    if (name.ends_with(".ids"))
      ids[name.substr(0, name.size() - 4)] = read<std::int32_t>(file, name, H5T_NATIVE_INT32);
    else
      dump[name] = read<double>(file, name, H5T_NATIVE_DOUBLE);
  H5Fclose(file);
  bounds::Replay replay(weights, passes, ids, dump, declared);
  int exit_code = 0;
  for (const auto& [id, value] : dump) {
    const bounds::ValueVerdict j = replay.judge(id);
    fmt::print("{} {} {:.3g} {:.3g}\n", id, to_string(j.fit), j.slack, j.reach);
    if (j.fit == bounds::Fit::different) exit_code = 1;
  }
  return exit_code;
}

}  // namespace
}  // namespace shardproof

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  try {
    return shardproof::judge(argv[1], argv[2]);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "judge_dump: %s\n", error.what());
    return 2;
  }
}
