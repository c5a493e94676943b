// The verb `weights`, and what a file of int8 weights means to the verbs that read one.
#include <nlohmann/json.hpp>
#include <string>

#include "engine/ops/int8_weights.h"
#include "tests/tools/cli_fixture.h"
#include "weights/storage/fold.h"
#include "weights/storage/store.h"

namespace {

using namespace shardproof;

class WeightsVerb : public Cli {
 protected:
  /// w.h5 of f32 weights, and w8.h5 of them as int8.
  void make(const std::string& more = "") const {
    const Outcome o = run("weights generate --model palm-tiny,layers=1,E=24,F=24,H=12,Q=2,V=264" +
                          more + " --seed 5 --out w.h5");
    ASSERT_EQ(o.code, 0) << o.err;
    const Outcome q = run("weights quantize w.h5 w8.h5");
    ASSERT_EQ(q.code, 0) << q.err;
  }
};

TEST_F(WeightsVerb, QuantizesAFile) {
  for (const char* more : {"", ",block=serial", ",norm=layernorm,bias=all,K=4", ",tied=false"}) {
    make(more);
    const Weights expected = int8_weights(load_weights(path("w.h5")));
    const Weights found = load_weights(path("w8.h5"));
    EXPECT_EQ(found.stored_type(), NumberFormat::int8);
    EXPECT_EQ(found.config(), expected.config());
    ASSERT_EQ(found.names().size(), expected.names().size());
    for (const auto& [name, tensor] : expected.tensors())
      EXPECT_EQ(found.at(name)->data, tensor.data) << name << more;
    EXPECT_EQ(files(), 2U);
    const std::string bytes = slurp(path("w8.h5"));
    EXPECT_EQ(run("weights quantize w.h5 w8.h5").code, 0);
    EXPECT_TRUE(slurp(path("w8.h5")) == bytes) << "equal weights are equal bytes";
    EXPECT_LT(bytes.size(), slurp(path("w.h5")).size());
  }
}

TEST_F(WeightsVerb, FoldsAFileOfEitherVersion) {
  for (const char* more : {"", ",block=serial", ",norm=layernorm,bias=all,K=4", ",tied=false"}) {
    make(more);
    for (const std::string from : {"w.h5", "w8.h5"}) {
      const Outcome o = run("weights fold " + from + " w2.h5");
      EXPECT_EQ(o.code, 0) << o.err;
      EXPECT_NE(o.out.find(",softmax=base2"), std::string::npos) << o.out;
      const Weights expected = fold(load_weights(path(from)));
      const Weights found = load_weights(path("w2.h5"));
      EXPECT_EQ(found.stored_type(), expected.stored_type());
      EXPECT_EQ(found.config(), expected.config());
      for (const auto& [name, tensor] : expected.tensors())
        EXPECT_EQ(found.at(name)->data, tensor.data) << name << more;
      const Outcome judged = run("verify --weights w2.h5 --torus 2x2x3 --prefill ws2d:batch");
      EXPECT_EQ(judged.code, 0) << judged.out << judged.err;
      EXPECT_EQ(judged.out.find("from the plain model"), std::string::npos);
      expect_refused("weights fold w2.h5 again.h5", "weights_fold: palm-tiny,layers=1");
    }
  }
  expect_refused("weights fold none.h5 out.h5", "weights_open: \"none.h5\"");
  expect_refused("weights fold w.h5 w.h5", "output_c2: OUT ");
}

TEST_F(WeightsVerb, InspectShowsCodesAndScales) {
  make();
  const auto types = [&](const char* file) {
    const Outcome o = run(std::string("weights inspect --json ") + file);
    EXPECT_EQ(o.code, 0) << o.err;
    const auto json = nlohmann::json::parse(o.out);
    std::string text = std::to_string(json["version"].get<int>());
    for (const auto& tensor : json["tensors"])
      if (tensor["name"] == "embed" || tensor["name"] == "layer0.wo" ||
          tensor["name"] == "layer0.block_out_scale")
        text += " " + tensor["name"].get<std::string>() + " " + tensor["type"].get<std::string>();
    return text;
  };
  EXPECT_EQ(types("w.h5"), "1 embed f32 layer0.wo f32");
  EXPECT_EQ(types("w8.h5"), "2 embed f32 layer0.wo int8 layer0.block_out_scale f32");
  for (const char* file : {"w.h5", "w8.h5"}) {
    const Outcome o = run(std::string("weights inspect ") + file);
    std::istringstream lines(o.out);
    std::size_t width = 0;
    std::string line;
    std::getline(lines, line);
    while (std::getline(lines, line)) {
      EXPECT_LE(line.size(), 80U) << line;
      if (width == 0) width = line.size();
      EXPECT_EQ(line.size(), width) << "not in columns: " << line;
    }
  }
}

TEST_F(WeightsVerb, ExplainShowsScalesInColumns) {
  for (const char* name : {"ws2d:batch", "wg-xyz:batch", "ws2d:bfirst-xy", "sp:2d"})
    for (const char* more : {"", " --model palm-tiny,bias=all,norm=layernorm --block serial"}) {
      const Outcome o = run("explain " + std::string(name) + " --weights int8" + more);
      ASSERT_EQ(o.code, 0) << o.err;
      std::istringstream lines(o.out);
      std::size_t roles = 0, scales = 0;
      for (std::string line; std::getline(lines, line);) {
        if (!line.starts_with("input ")) {
          roles = 0;  // another program
          continue;
        }
        EXPECT_LE(line.size(), 80U) << line;
        const auto role = line.rfind("  ") + 2;
        if (roles == 0) roles = role;
        EXPECT_EQ(role, roles) << "not in columns: " << line;
        if (line.ends_with("_scale")) ++scales;
      }
      EXPECT_EQ(scales, *more == '\0' ? 6U : 7U) << o.out;
    }
}

}  // namespace
