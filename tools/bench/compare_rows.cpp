// Traces of models of the sizes that people serve: written, and judged.
#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <limits>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "tools/bench/child.h"
#include "tools/bench/row.h"

namespace shardproof::bench {
namespace {

namespace fs = std::filesystem;

/// A case, what its trace and judging it may take, and what it is called.
struct Subject {
  const char* id;
  const char* what;
  const char* line;
  Target judged;
  std::optional<Target> memory, written;
  const char* one_layer = nullptr;  ///< the case of one of its layers
  std::optional<Target> diagnosed = std::nullopt, memory_of_diagnosis = std::nullopt;
};

constexpr Subject kSubjects[] = {
    {"7b", "a layer of 7B, 16 tokens, 8 chips, f32",
     "torus=2x2x2 model=llama-7b,layers=1,K=8 prefill=ws1d:heads batch=2 prompt=8 gen=1 "
     "regime=f32 seed=3",
     Target{6.0}, Target{2.5e9}, Target{8.0}, nullptr, Target{20.0}, Target{4e9}},
    {"70b", "a layer of 70B, 64 tokens, 8 chips, f32",
     "torus=2x2x2 model=llama-2-70b,layers=1,V=128256 prefill=ws1d:heads batch=4 prompt=16 gen=1 "
     "regime=f32 seed=3",
     Target{30.0}, Target{6e9}, std::nullopt},
    {"7b-layers", "8 layers of 7B, 64 tokens, 8 chips, bf16",
     "torus=2x2x2 model=llama-7b,layers=8,K=8 prefill=ws1d:heads batch=4 prompt=16 gen=1 "
     "weights=bf16 act=bf16 seed=3",
     Target{60.0}, std::nullopt, std::nullopt,
     "torus=2x2x2 model=llama-7b,layers=1,K=8 prefill=ws1d:heads batch=4 prompt=16 gen=1 "
     "weights=bf16 act=bf16 seed=3"}};

/// A trace in the temporary folder, written at its first use and removed with the last row.
class TraceOnDisk {
 public:
  TraceOnDisk(std::string program, std::string line, const std::string& id)
      : program_(std::move(program)),
        line_(std::move(line)),
        path_(fs::temp_directory_path() /
              fmt::format("shardproof-bench-{}-{}.h5", ::getpid(), id)) {}
  TraceOnDisk(const TraceOnDisk&) = delete;
  TraceOnDisk& operator=(const TraceOnDisk&) = delete;
  ~TraceOnDisk() {
    std::error_code ignored;
    fs::remove(path_, ignored);
  }

  const Child& written() {
    if (!written_) written_ = run_child(program_, {"run", "--case", line_, "--trace", path()});
    return *written_;
  }
  /// Judged on all processors, after a first time that brings the file into the page cache.
  const Child& judged() {
    if (!judged_) {
      judge();
      judged_ = judge();
    }
    return *judged_;
  }
  /// `before`: words of a command in front of the program's.
  Child judge(std::vector<std::string> before = {}) {
    written();
    before.push_back(program_);
    before.insert(before.end(), {"compare", path(), "--quiet"});
    return run_child(before[0], {before.begin() + 1, before.end()});
  }
  /// A copy of it, in which one projection is wrong, is judged.
  const Child& diagnosed() {
    if (diagnosed_) return *diagnosed_;
    written();
    const std::string wrong = path() + ".wrong";
    fs::copy_file(path(), wrong, fs::copy_options::overwrite_existing);
    try {
      run_child("/usr/bin/python3", {SHARDPROOF_SOURCE "/tools/bench/wrong_projection.py", wrong});
      diagnosed_ = run_child(program_, {"compare", wrong}, 1);
    } catch (...) {
      fs::remove(wrong);
      throw;
    }
    fs::remove(wrong);
    if (diagnosed_->text.find("chunks in another order") == std::string::npos)
      throw std::runtime_error("the exchanged blocks are not named");
    return *diagnosed_;
  }
  Child forward() {
    written();
    return run_child("/usr/bin/python3", {SHARDPROOF_SOURCE "/tools/bench/f64_forward.py", path()});
  }

 private:
  std::string path() const { return path_.string(); }

  std::string program_, line_;
  fs::path path_;
  std::optional<Child> written_, judged_, diagnosed_;
};

Row row_of(const Subject& subject, const char* id, const char* what, std::optional<Target> target,
           Unit unit, std::function<Sample()> once) {
  return {.id = fmt::format("compare/{}/{}", subject.id, id),
          .group = fmt::format("compare, {}", subject.what),
          .what = what,
          .target = target,
          .unit = unit,
          .decides = unit == Unit::bytes || std::string_view(id) == "layers" ? Decides::neither
                                                                             : Decides::wall,
          .once = true,
          .apart = true,
          .start = [once = std::move(once)] { return once; }};
}

}  // namespace

std::vector<Row> compare_rows(const std::string& program) {
  std::vector<Row> rows;
  for (const Subject& subject : kSubjects) {
    const auto trace = std::make_shared<TraceOnDisk>(program, subject.line, subject.id);
    rows.push_back(row_of(subject, "run", "run --trace", subject.written, Unit::seconds, [trace] {
      return Sample{trace->written().cost, {}, trace->written().cost};
    }));
    rows.push_back(row_of(subject, "time", "compare", subject.judged, Unit::seconds, [trace] {
      return Sample{trace->judged().cost, {}, trace->judged().cost};
    }));
    rows.push_back(row_of(
        subject, "memory", "memory but files, at most", subject.memory, Unit::bytes, [trace] {
          const Child& child = trace->judged();
          return Sample{
              child.cost,
              {},
              {static_cast<double>(child.own_bytes), std::numeric_limits<double>::quiet_NaN()}};
        }));
    if (subject.one_layer != nullptr)
      rows.push_back(row_of(subject, "layers", "memory over that of one", Target{1.1}, Unit::ratio,
                            [trace, program, line = subject.one_layer] {
                              const Child& all = trace->judged();
                              TraceOnDisk one(program, line, "one-layer");
                              const auto bytes = static_cast<double>(one.judge().own_bytes);
                              return Sample{all.cost,
                                            {},
                                            {static_cast<double>(all.own_bytes) / bytes,
                                             std::numeric_limits<double>::quiet_NaN()}};
                            }));
    rows.push_back(
        row_of(subject, "resident", "memory with files, at most", {}, Unit::bytes, [trace] {
          const Child& child = trace->judged();
          return Sample{child.cost,
                        {},
                        {static_cast<double>(child.peak_bytes.value_or(0)),
                         std::numeric_limits<double>::quiet_NaN()}};
        }));
    rows.push_back(
        row_of(subject, "threads", "all processors / one", Target{0.6}, Unit::ratio, [trace] {
          return Sample::ratio(trace->judged().cost,
                               trace->judge({"/usr/bin/taskset", "-c", "0"}).cost);
        }));
    rows.push_back(
        row_of(subject, "f64", "over the same in f64", Target{2.0}, Unit::ratio,
               [trace] { return Sample::ratio(trace->judged().cost, trace->forward().cost); }));
    if (!subject.diagnosed) continue;
    rows.push_back(row_of(subject, "diagnosis", "diagnosis of a projection", subject.diagnosed,
                          Unit::seconds, [trace] {
                            return Sample{trace->diagnosed().cost, {}, trace->diagnosed().cost};
                          }));
    rows.push_back(row_of(subject, "diagnosis-memory", "its memory but files",
                          subject.memory_of_diagnosis, Unit::bytes, [trace] {
                            const Child& child = trace->diagnosed();
                            return Sample{child.cost,
                                          {},
                                          {static_cast<double>(child.own_bytes),
                                           std::numeric_limits<double>::quiet_NaN()}};
                          }));
  }
  return rows;
}

}  // namespace shardproof::bench
