#include "golden/trace/trace.h"

#include <hdf5.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>

#include "golden/expected.h"
#include "golden/observers.h"
#include "golden/verify.h"
#include "tests/golden/case_gen.h"
#include "tests/golden/faults.h"
#include "weights/error.h"
#include "weights/generator.h"
#include "weights/hdf5/handle.h"

namespace shardproof {
namespace {

namespace fs = std::filesystem;

/// A fresh directory that goes when the test does.
class Folder {
 public:
  Folder() {
    std::string name = (fs::temp_directory_path() / "shardproof-trace-XXXXXX").string();
    path_ = ::mkdtemp(name.data());
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() { fs::remove_all(path_); }

  fs::path operator/(const char* name) const { return path_ / name; }
  std::set<std::string> entries() const {
    std::set<std::string> names;
    for (const auto& entry : fs::directory_iterator(path_)) names.insert(entry.path().filename());
    return names;
  }

 private:
  fs::path path_;
};

/// A trace file as the HDF5 library reads it.
class Reader {
 public:
  explicit Reader(const fs::path& path)
      : file_(H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT), H5Fclose) {}

  bool opened() const { return static_cast<bool>(file_); }

  std::set<std::string> names(const std::string& group) const {
    const Hdf5Handle at(H5Gopen2(file_.get(), group.c_str(), H5P_DEFAULT), H5Gclose);
    std::set<std::string> found;
    const auto visit = [](hid_t, const char* name, const H5L_info_t*, void* out) -> herr_t {
      static_cast<std::set<std::string>*>(out)->insert(name);
      return 0;
    };
    H5Literate(at.get(), H5_INDEX_NAME, H5_ITER_NATIVE, nullptr, visit, &found);
    return found;
  }

  /// Every element's bytes, and the shape.
  std::string data(const std::string& name, Shape* shape = nullptr) const {
    const Hdf5Handle data(H5Dopen2(file_.get(), name.c_str(), H5P_DEFAULT), H5Dclose);
    if (!data) return "none";
    const Hdf5Handle space(H5Dget_space(data.get()), H5Sclose);
    const Hdf5Handle type(H5Dget_type(data.get()), H5Tclose);
    std::vector<hsize_t> dims(static_cast<std::size_t>(H5Sget_simple_extent_ndims(space.get())));
    H5Sget_simple_extent_dims(space.get(), dims.data(), nullptr);
    if (shape != nullptr) shape->assign(dims.begin(), dims.end());
    const auto count = static_cast<std::size_t>(H5Sget_simple_extent_npoints(space.get()));
    std::string bytes(count * H5Tget_size(type.get()), '\0');
    if (count > 0) H5Dread(data.get(), type.get(), H5S_ALL, H5S_ALL, H5P_DEFAULT, bytes.data());
    return bytes;
  }

  std::string text(const std::string& object, const char* attribute) const {
    const Hdf5Handle at(
        H5Aopen_by_name(file_.get(), object.c_str(), attribute, H5P_DEFAULT, H5P_DEFAULT),
        H5Aclose);
    if (!at) return "none";
    const Hdf5Handle type(H5Aget_type(at.get()), H5Tclose);
    std::string value(H5Tget_size(type.get()), '\0');
    H5Aread(at.get(), type.get(), value.data());
    return value;
  }

  int number(const std::string& object, const char* attribute) const {
    const Hdf5Handle at(
        H5Aopen_by_name(file_.get(), object.c_str(), attribute, H5P_DEFAULT, H5P_DEFAULT),
        H5Aclose);
    int value = -1;
    if (at) H5Aread(at.get(), H5T_NATIVE_INT, &value);
    return value;
  }

 private:
  Hdf5Handle file_;
};

template <class Values>
std::string bytes_of(const Values& values) {
  std::string bytes(values.size() * sizeof(values[0]), '\0');
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

std::string group_of(const Torus& torus, int chip) {
  return "chips/" + std::to_string(torus.coordinate(chip, Axis::x)) + "_" +
         std::to_string(torus.coordinate(chip, Axis::y)) + "_" +
         std::to_string(torus.coordinate(chip, Axis::z));
}

/// Keeps what a run shows, and what the oracle says of it.
class Keeper : public Observer {
 public:
  struct Kept {
    Result declared;
    std::string op;
    Sharded value;
    Expected expected;
  };

  explicit Keeper(const OracleMemo::Known* known) : known_(known) {}

  void observe(const Scope& scope, const Program& program, const Op* op, const Result& declared,
               const Sharded& value) override {
    if (op == nullptr) return;
    const std::string id = scope.step(program, declared.name);
    order.push_back(id);
    Expected expected;
    if (known_ != nullptr)
      expected =
          expected_value(known_->answer, known_->weights, scope, declared.meaning, value.shape);
    kept.emplace(id, Kept{declared, op->to_string(), value, std::move(expected)});
  }

  std::vector<std::string> order;
  std::map<std::string, Kept> kept;

 private:
  const OracleMemo::Known* known_;
};

std::string bytes_of_whole(const Sharded& value) {
  return std::holds_alternative<ChipArrays<std::int32_t>>(value.data)
             ? bytes_of(assemble_int(value).data)
             : bytes_of(assemble(value).data);
}

struct Traced {
  Judgement judgement;
  Keeper keeper;
};

Traced trace_case(const Case& c, const fs::path& target, bool against_oracle = true,
                  FaultHooks faults = {}) {
  OracleMemo memo;
  const auto known = memo.get(c);
  Traced traced{{}, Keeper(against_oracle ? known.get() : nullptr)};
  Trace trace(make_typed_plan(c), known->prompt, target);
  Observers both({&trace, &traced.keeper});
  VerifyOptions options;
  options.observer = &both;
  options.faults = std::move(faults);
  traced.judgement = verify_case(c, memo, options);
  trace.write(traced.judgement.difference() ? traced.judgement.explanation() : "complete");
  return traced;
}

/// The first thing in the file that is not what the keeper saw; empty if there is none.
std::string first_difference(const Reader& file, const Case& c, const Keeper& keeper,
                             bool complete) {
  std::set<std::string> ids(keeper.order.begin(), keeper.order.end());
  for (int chip = 0; chip < c.torus.chips(); ++chip)
    if (file.names(group_of(c.torus, chip)) != ids) return "steps of a chip";
  // A sum of f32 partials has no bits before its schedule.
  const auto unsummed = [&](const std::string& id) {
    return c.numerics.regime == Regime::f32 && keeper.kept.at(id).declared.layout.is_partial();
  };
  std::set<std::string> root{"chips", "prompt"};
  for (const std::string& id : ids)
    if (!unsummed(id)) root.insert(id);
  if (complete) root.insert("generated");
  if (file.names("/") != root) return "names";
  for (std::size_t i = 0; i < keeper.order.size(); ++i) {
    const std::string& id = keeper.order[i];
    const Keeper::Kept& kept = keeper.kept.at(id);
    const Shape local = local_shape(kept.declared.layout, kept.value.shape, c.torus);
    Shape shape;
    if (!unsummed(id)) {
      // By the oracle: the bits of the logical tensor, also of one that only partials hold.
      const bool whole = c.numerics.regime == Regime::exact
                             ? file.data(id, &shape) == bytes_of(kept.expected.bits)
                             : file.data(id, &shape) == bytes_of_whole(kept.value);
      if (!whole) return id;
      if (shape != kept.value.shape) return id + " shape";
    }
    for (int chip = unsummed(id) ? 0 : -1; chip < c.torus.chips(); ++chip) {
      const std::string path = chip < 0 ? id : group_of(c.torus, chip) + "/" + id;
      if (file.text(path, "layout") != kept.declared.layout.to_string()) return path + " layout";
      if (file.text(path, "meaning") != kept.declared.meaning.to_string()) return path + " meaning";
      if (file.text(path, "op") != kept.op) return path + " op";
      if (file.number(path, "order") != static_cast<int>(i)) return path + " order";
      if (chip < 0) continue;
      const auto at = static_cast<std::size_t>(chip);
      const std::string held = std::visit(
          [&](const auto& data) {
            if constexpr (std::is_same_v<std::decay_t<decltype(data)>, Partial>)
              return bytes_of(data.values[at]);
            else
              return bytes_of(data[at]);
          },
          kept.value.data);
      if (file.data(path, &shape) != held || shape != local) return path;
      const std::string dtype = file.text(path, "dtype");
      const bool integer = std::holds_alternative<ChipArrays<std::int32_t>>(kept.value.data);
      if (unsummed(id)                 ? dtype != "f32 partial"
          : kept.value.holds_partial() ? dtype != "f64 partial"
          : integer                    ? dtype != "int32"
                                       : dtype != "f32" && dtype != "bf16")
        return path + " dtype";
    }
  }
  return "";
}

/// The ids of all steps of a whole run, from its programs.
std::set<std::string> step_ids(const Case& c) {
  const RunPlan programs = make_plan(c);
  std::set<std::string> ids;
  const auto add = [&](const Program& program, const std::string& pass, int layer) {
    for (const Op& op : program.ops)
      for (const Result& r : op.results) ids.insert(Scope{pass, "", layer}.step(program, r.name));
  };
  const auto pass = [&](const PhasePrograms& phase, const std::string& name, bool samples) {
    add(phase.embed, name, 0);
    for (int l = 0; l < c.model.layers; ++l) add(phase.layer, name, l);
    add(phase.head, name, 0);
    if (samples) add(phase.sample, name, 0);
  };
  std::int64_t chunks = 0;
  for (std::int64_t at = 0; at < c.prompt; at += c.chunk, ++chunks)
    pass(programs.prefill, "prefill.c" + std::to_string(chunks), at + c.chunk >= c.prompt);
  for (std::int64_t step = 1; step < c.gen; ++step)
    pass(programs.decode, "decode." + std::to_string(step), true);
  if (c.gen > 1)
    for (int l = 0; l < c.model.layers; ++l)
      add(programs.hand_over, "prefill.c" + std::to_string(chunks - 1), l);
  return ids;
}

const char* const kCase =
    "torus=2x1x3 model=palm-tiny,layers=2,E=12,F=12,H=6,Q=2,V=12 prefill=ws2d:heads "
    "decode=ws2d:batch prompt=3 chunk=2 gen=3 seed=5";

TEST(Trace, HoldsEveryOpOutputOfEveryPassAsTheOracleSaysItIs) {
  const Folder folder;
  const Case c = parse_case(kCase);
  const Traced traced = trace_case(c, folder / "t.h5");
  EXPECT_EQ(traced.judgement.verdict, Verdict::equal);
  EXPECT_EQ(folder.entries(), std::set<std::string>{"t.h5"});
  const Reader file(folder / "t.h5");
  ASSERT_TRUE(file.opened());
  const std::set<std::string> seen(traced.keeper.order.begin(), traced.keeper.order.end());
  EXPECT_EQ(seen, step_ids(c));
  const auto handed_over = [](const std::string& id) {
    return id.starts_with("prefill.c1.layer1.hand_over.");
  };
  EXPECT_TRUE(std::any_of(seen.begin(), seen.end(), handed_over));
  EXPECT_EQ(first_difference(file, c, traced.keeper, true), "");

  EXPECT_EQ(file.text("/", "format"), "shardproof trace");
  EXPECT_EQ(file.number("/", "version"), 0);
  EXPECT_EQ(parse_case(file.text("/", "case")), c);
  EXPECT_EQ(file.text("/", "torus"), "2x1x3");
  EXPECT_EQ(file.text("/", "ended"), "complete");
  EXPECT_EQ(file.number("/chips/1_0_2", "x"), 1);
  EXPECT_EQ(file.number("/chips/1_0_2", "z"), 2);
  // F_zyx: chip (1,0,1) holds block 1·2+1 = 3 of 6, two wide.
  Shape shape;
  const std::string whole = file.data("decode.1.layer0.hr", &shape);
  EXPECT_EQ(shape, (Shape{6, 1, 12}));
  const std::string shard = file.data("chips/1_0_1/decode.1.layer0.hr", &shape);
  EXPECT_EQ(shape, (Shape{6, 1, 2}));
  EXPECT_EQ(shard.substr(0, 8), whole.substr(std::size_t{4} * 6, 8));
  EXPECT_EQ(file.data("prompt").size(), 4U * 6 * 3);
  // Column by column the tokens of the passes.
  const std::string generated = file.data("generated", &shape);
  EXPECT_EQ(shape, (Shape{6, 3}));
  for (std::size_t b = 0; b < 6; ++b) {
    EXPECT_EQ(generated.substr(12 * b, 4), file.data("prefill.c1.sample.token").substr(4 * b, 4));
    EXPECT_EQ(generated.substr(12 * b + 8, 4), file.data("decode.2.sample.token").substr(4 * b, 4));
  }
}

TEST(Trace, TheReadingBackSeesAFault) {
  // Read back with the shards of two chips exchanged, a value changed, and a step too many.
  const Folder folder;
  const Case c = parse_case(kCase);
  Traced traced = trace_case(c, folder / "t.h5");
  const Reader file(folder / "t.h5");
  auto& kept = traced.keeper.kept.at("decode.1.layer0.hr");
  auto& chips = std::get<ChipArrays<float>>(kept.value.data);
  std::swap(chips[0], chips[4]);
  EXPECT_EQ(first_difference(file, c, traced.keeper, true), "chips/0_0_0/decode.1.layer0.hr");
  std::swap(chips[0], chips[4]);
  kept.expected.bits[3] ^= 1;
  EXPECT_EQ(first_difference(file, c, traced.keeper, true), "decode.1.layer0.hr");
  kept.expected.bits[3] ^= 1;
  kept.declared.layout = Layout::parse("BLF_xyz");
  EXPECT_EQ(first_difference(file, c, traced.keeper, true), "decode.1.layer0.hr layout");
  kept.declared.layout = Layout::parse("BLF_zyx");
  EXPECT_EQ(first_difference(file, c, traced.keeper, true), "");
  traced.keeper.order.emplace_back("decode.1.layer0.nothing");
  EXPECT_EQ(first_difference(file, c, traced.keeper, true), "steps of a chip");
}

TEST(Trace, ReadsBackAsAnObserverOfTheRunSawIt) {
  rc::detail::TestParams params = rc::detail::configuration().testParams;
  params.maxSuccess = std::min(params.maxSuccess, 12);  // a file has thousands of datasets
  const auto result = rc::detail::checkTestable(
      [] {
        Case c = *any_case();
        c.model.layers = 1;
        c.gen = std::min<std::int64_t>(c.gen, 3);
        RC_PRE(c.torus.chips() <= 12);
        const Folder folder;
        const Traced traced = trace_case(c, folder / "t.h5");
        RC_ASSERT(traced.judgement.verdict == Verdict::equal);
        const Reader file(folder / "t.h5");
        RC_ASSERT(first_difference(file, c, traced.keeper, true) == "");
        const auto size = static_cast<double>(fs::file_size(folder / "t.h5"));
        const double estimate = estimated_trace_bytes(make_typed_plan(c));
        constexpr double kFile = 1 << 20;
        RC_ASSERT(size <= estimate);
        RC_ASSERT(estimate <= 2.0 * size + kFile);
      },
      rc::detail::TestMetadata(), params);
  EXPECT_TRUE(result.is<rc::detail::SuccessResult>()) << rc::toString(result);
}

TEST(Trace, EqualRunsGiveEqualBytes) {
  const Folder folder;
  const Case c = parse_case(kCase);
  trace_case(c, folder / "a.h5");
  ::sleep(1);  // HDF5 would keep the second in which an object was made
  trace_case(c, folder / "b.h5");
  std::ifstream a(folder / "a.h5", std::ios::binary);
  std::ifstream b(folder / "b.h5", std::ios::binary);
  const std::string in_a(std::istreambuf_iterator<char>(a), {});
  const std::string in_b(std::istreambuf_iterator<char>(b), {});
  EXPECT_GT(in_a.size(), 100000U);
  EXPECT_TRUE(in_a == in_b);
}

TEST(Trace, SaysWhatIsStoredAsBf16) {
  const Folder folder;
  const Case c = parse_case(std::string(kCase) + " act=bf16");
  const Traced traced = trace_case(c, folder / "t.h5");
  const Reader file(folder / "t.h5");
  EXPECT_EQ(first_difference(file, c, traced.keeper, true), "");
  std::map<std::string, std::set<std::string>> dtypes;  // by meaning
  for (const auto& [id, kept] : traced.keeper.kept)
    if (!kept.value.holds_partial()) {
      const std::string dtype = file.text(id, "dtype");
      dtypes[kept.declared.meaning.to_string()].insert(dtype);
      if (dtype != "bf16") continue;
      for (std::uint32_t bits : kept.expected.bits) EXPECT_EQ(bits & 0xFFFFU, 0U) << id;
    }
  for (const char* stored : {"embed", "in", "norm", "q_rot", "k_cache", "attn", "gate", "out"})
    EXPECT_EQ(dtypes[stored], std::set<std::string>{"bf16"}) << stored;
  for (const char* wide : {"raw gate", "score", "exp", "denom", "logits", "stat ss"})
    EXPECT_EQ(dtypes[wide], std::set<std::string>{"f32"}) << wide;
  EXPECT_EQ(dtypes["token"], std::set<std::string>{"int32"});
}

TEST(Trace, OfAWrongRunEndsAtTheFirstWrongStep) {
  const Folder folder;
  const Case c = parse_case(kCase);
  const Traced traced = trace_case(c, folder / "t.h5", false, lost_transfer("hr", "decode"));
  ASSERT_EQ(traced.judgement.verdict, Verdict::different);
  EXPECT_EQ(traced.judgement.difference()->step, "decode.1.layer0.hr");
  const Reader file(folder / "t.h5");
  EXPECT_EQ(file.text("/", "ended"), traced.judgement.explanation());
  // The keeper stands behind the trace and before the judge: both saw the wrong step last.
  EXPECT_EQ(traced.keeper.order.back(), "decode.1.layer0.hr");
  std::set<std::string> names(traced.keeper.order.begin(), traced.keeper.order.end());
  names.insert({"chips", "prompt", "generated"});  // the prefill's token was sampled
  EXPECT_EQ(file.names("/"), names);
  // Its shards are what the chips held, wrong as they are.
  const Sharded& wrong = traced.keeper.kept.at("decode.1.layer0.hr").value;
  EXPECT_EQ(file.data("chips/1_0_1/decode.1.layer0.hr"), bytes_of(wrong.f32()[4]));
}

TEST(Trace, OfTheF32RegimeEndsWithTheStepThatTheExactOneShowedWrong) {
  const Folder folder;
  const Case c = parse_case(std::string(kCase) + " regime=f32 schedule=ring");
  const Traced traced = trace_case(c, folder / "t.h5", false, lost_transfer("hr", "decode"));
  ASSERT_EQ(traced.judgement.verdict, Verdict::different);
  EXPECT_EQ(traced.keeper.order.back(), traced.judgement.difference()->step);
  const Reader file(folder / "t.h5");
  EXPECT_EQ(file.text("/", "ended"), traced.judgement.explanation());
  EXPECT_EQ(file.text("chips/0_0_0/decode.1.layer0.h", "dtype"), "f32 partial");
}

/// Shows a trace one value, made by hand.
void show(Trace& trace, const Sharded& value, const Layout& declared) {
  const Program program = parse_program("layer", "input h : F_x is raw gate\n");
  Op op;
  op.kind = OpKind::store;
  op.args = {"h"};
  op.results = {{"made", declared, Meaning::parse("raw gate")}};
  trace.observe({"decode.1", "", 0}, program, &op, op.results[0], value);
}

TEST(Trace, OfAGivenLayerNamesNoStrategy) {
  const Folder folder;
  const Case c = parse_case(kCase);
  OracleMemo memo;
  const Program layer = partitioned(c, Strategy::parse("ws2d:batch"), Phase::prefill).layer;
  Case given = c;
  given.prefill = given.decode = Strategy(layer);
  Trace trace(make_typed_plan(given), memo.get(c)->prompt, folder / "t.h5");
  trace.write("complete");
  const Reader file(folder / "t.h5");
  EXPECT_EQ(file.text("/", "case").find("prefill="), std::string::npos);
  EXPECT_EQ(file.text("/", "case").find("decode="), std::string::npos);
  EXPECT_NE(file.text("/", "case").find("torus=2x1x3 "), std::string::npos);
  EXPECT_EQ(file.text("/", "program"), print_program(layer));
}

TEST(Trace, OfPartialsOfTheF32RegimeHasTheShardsOnly) {
  const Folder folder;
  const Case c = parse_case("torus=2x1x1 prefill=ws1d");
  Trace trace(make_typed_plan(c), IntTensor({1, 4}), folder / "t.h5");
  const Layout layout = Layout::parse("F partialsum-x");
  show(trace, {c.torus, layout, {3}, ChipArrays<float>{{1, 2, 3}, {10, 20, 30}}}, layout);
  trace.write("complete");
  const Reader file(folder / "t.h5");
  EXPECT_EQ(file.names("/"), (std::set<std::string>{"chips", "prompt"}));
  EXPECT_EQ(file.text("chips/1_0_0/decode.1.layer0.made", "dtype"), "f32 partial");
  EXPECT_EQ(file.data("chips/1_0_0/decode.1.layer0.made"),
            bytes_of(std::vector<float>{10, 20, 30}));
}

TEST(Trace, OfShardsThatTheirLayoutDoesNotFitIsFlat) {
  // Without the type check a step may yield what its declaration cannot be.
  const Folder folder;
  const Case c = parse_case("torus=2x1x1 prefill=ws1d");
  Trace trace(make_typed_plan(c), IntTensor({1, 4}), folder / "t.h5");
  const Sharded value{c.torus, Layout::parse("F"), {3}, ChipArrays<float>{{1, 2, 3}, {1, 2, 3}}};
  show(trace, value, Layout::parse("F_x"));
  trace.write("complete");
  const Reader file(folder / "t.h5");
  EXPECT_EQ(file.names("/"), (std::set<std::string>{"chips", "prompt"}));
  EXPECT_EQ(file.text("chips/0_0_0/decode.1.layer0.made", "layout"), "F_x");
  EXPECT_EQ(file.data("chips/0_0_0/decode.1.layer0.made"), bytes_of(std::vector<float>{1, 2, 3}));
}

std::string refusal(const Case& c, const fs::path& target) {
  try {
    Trace(make_typed_plan(c), IntTensor({1, 4}), target).write("complete");
  } catch (const Error& error) {
    const std::string what = error.what();
    EXPECT_EQ(what.find('\n'), std::string::npos) << what;
    return what;
  }
  return "";
}

TEST(Trace, RefusesPathsWhereNoFileCanBeMade) {
  const Folder folder;
  const Case c = parse_case("torus=2x1x1 prefill=ws1d");
  fs::create_directory(folder / "folder");
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  for (const char* bad : {"folder", "pipe", "no/such/file", "new/"}) {
    EXPECT_EQ(refusal(c, folder / bad).rfind("trace_c1: ", 0), 0U) << bad;
    EXPECT_EQ(folder.entries(), (std::set<std::string>{"folder", "pipe"})) << bad;
  }
  EXPECT_EQ(refusal(c, "/dev/full").rfind("trace_c1: ", 0), 0U);
  EXPECT_EQ(refusal(c, "").rfind("trace_c1: ", 0), 0U);
  EXPECT_TRUE(fs::is_fifo(folder / "pipe"));
}

TEST(Trace, RefusesWhatDoesNotFitAndNamesTheSize) {
  const Folder folder;
  const std::string what = refusal(
      parse_case("torus=8x8x8 model=palm-wide prefill=ws2d:batch batch=512 prompt=2000 gen=2"),
      folder / "t.h5");
  EXPECT_EQ(what.rfind("trace_c2: ", 0), 0U) << what;
  EXPECT_NE(what.find("GiB"), std::string::npos) << what;
  EXPECT_TRUE(folder.entries().empty());
}

TEST(Trace, LeavesTheOldFileWhereTheDiskRefusesTheNew) {
  const Folder folder;
  std::ofstream(folder / "t.h5") << "old";
  rlimit unlimited{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &unlimited), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit little = unlimited;
  little.rlim_cur = 1024;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &little), 0);
  const std::string what = refusal(parse_case("torus=2x1x1 prefill=ws1d"), folder / "t.h5");
  ::setrlimit(RLIMIT_FSIZE, &unlimited);
  std::signal(SIGXFSZ, handler);
  EXPECT_EQ(what.rfind("trace_c1: ", 0), 0U) << what;
  EXPECT_NE(what.find("too large"), std::string::npos) << what;
  EXPECT_EQ(folder.entries(), std::set<std::string>{"t.h5"});
  EXPECT_EQ(fs::file_size(folder / "t.h5"), 3U);
}

}  // namespace
}  // namespace shardproof
