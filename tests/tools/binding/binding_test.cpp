// The C interface as another language sees it: JSON, handles and addresses.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "tests/weights/folder.h"
#include "tools/binding/boundary.h"
#include "tools/binding/shardproof.h"

namespace shardproof::binding {
namespace {

using nlohmann::json;

constexpr const char* kLine =
    "torus=2x1x3 model=palm-tiny,layers=1,E=12,F=12,H=6,Q=2,V=12 batch=6 prompt=3 gen=2 seed=5";
constexpr const char* kModel = "palm-tiny,layers=1,E=12,F=12,H=6,Q=2,V=12";

json taken(char* text) {
  const json answer = json::parse(text);
  shardproof_free(text);
  return answer;
}

std::string label(char* text) {
  const json answer = taken(text);
  return answer.contains("error") ? answer["error"]["label"].get<std::string>() : "";
}

/// An object, released with this.
struct Made {
  ShardproofObject* object = nullptr;
  Made() = default;
  Made(const Made&) = delete;
  Made& operator=(const Made&) = delete;
  ~Made() { shardproof_release(object); }
};

TEST(Binding, AnswersInJson) {
  EXPECT_EQ(shardproof_interface(), 3);
  EXPECT_EQ(shardproof_missing_feature(), nullptr);
  const json layout = taken(shardproof_layout("BLE_zx partialsum-y"));
  EXPECT_EQ(layout["dims"][2], (json{{"letter", "E"}, {"axes", "zx"}}));
  EXPECT_EQ(layout["partial"], "y");
  const json blocks = taken(shardproof_blocks("BE_zx", "2x1x3", "[4, 12]"));
  EXPECT_EQ(blocks["sizes"], (json{2, 1, 3}));
  EXPECT_EQ(blocks["local"], (json{4, 2}));
  EXPECT_EQ(blocks["blocks"], json::parse("[[0,0],[0,2],[0,4],[0,1],[0,3],[0,5]]"));
  EXPECT_EQ(taken(shardproof_case(kLine))["torus"], "2x1x3");
  EXPECT_EQ(taken(shardproof_verify(kLine))["verdict"], "equal");
  const json drawn = taken(shardproof_draw(1, 0));
  const std::string line = drawn["case"];
  for (const std::string simpler : taken(shardproof_simpler(line.c_str()))["cases"])
    EXPECT_EQ(taken(shardproof_case(simpler.c_str()))["case"], simpler);
}

TEST(Binding, KeepsWeightsAndValues) {
  Made weights, loaded, copied, reference;
  EXPECT_EQ(label(shardproof_weights_generate(kModel, 5, &weights.object)), "");
  const json tensors = taken(shardproof_weights_list(weights.object))["tensors"];
  std::vector<const float*> data;
  for (const json& tensor : tensors)
    data.push_back(
        shardproof_weights_data(weights.object, tensor["name"].get<std::string>().c_str()));
  const Folder folder;
  const std::string file = folder / "w.h5";
  EXPECT_EQ(label(shardproof_weights_save(weights.object, file.c_str())), "");
  EXPECT_EQ(label(shardproof_weights_load(file.c_str(), &loaded.object)), "");
  EXPECT_EQ(
      label(shardproof_weights_of(kModel, tensors.dump().c_str(), data.data(), &copied.object)),
      "");
  for (std::size_t i = 0; i < tensors.size(); ++i)
    for (ShardproofObject* other : {loaded.object, copied.object}) {
      const float* const numbers =
          shardproof_weights_data(other, tensors[i]["name"].get<std::string>().c_str());
      ASSERT_NE(numbers, nullptr);
      EXPECT_NE(numbers, data[i]);
      EXPECT_EQ(numbers[0], data[i][0]);
    }
  EXPECT_EQ(label(shardproof_reference(kLine, weights.object, &reference.object)), "");
  const json values = taken(shardproof_reference_list(reference.object))["values"];
  EXPECT_EQ(values[0]["id"], "prefill.c0.ids");
  EXPECT_EQ(values[0]["type"], "i32");
  for (const json& value : values)
    EXPECT_NE(shardproof_reference_data(reference.object, value["id"].get<std::string>().c_str()),
              nullptr);
  EXPECT_EQ(shardproof_reference_data(reference.object, "none"), nullptr);
  EXPECT_EQ(shardproof_weights_data(weights.object, "none"), nullptr);
}

TEST(Binding, JudgesADump) {
  Made reference, dump, comparison;
  ASSERT_EQ(label(shardproof_reference(kLine, nullptr, &reference.object)), "");
  const json attributes{{"format", "shardproof trace"}, {"version", 1}, {"case", kLine}};
  ASSERT_EQ(label(shardproof_dump(attributes.dump().c_str(), &dump.object)), "");
  const json shape = {6, 3};
  json what{{"name", "prefill.c0.ids"}, {"encoding", "int32"}, {"shape", shape}};
  const void* const ids = shardproof_reference_data(reference.object, "prefill.c0.ids");
  EXPECT_EQ(label(shardproof_dump_add(dump.object, what.dump().c_str(), ids, 4 * 18)), "");
  EXPECT_EQ(label(shardproof_dump_add(dump.object, what.dump().c_str(), ids, 4 * 18)),
            "dump_value");
  what["name"] = "b";
  EXPECT_EQ(label(shardproof_dump_add(dump.object, what.dump().c_str(), ids, 4 * 17)),
            "dump_value");
  what["encoding"] = "f80";
  EXPECT_EQ(label(shardproof_dump_add(dump.object, what.dump().c_str(), ids, 4 * 18)),
            "dump_value");
  ASSERT_EQ(
      label(shardproof_compare(dump.object, nullptr, R"({"file": "mine"})", &comparison.object)),
      "");
  // Not copied, it is the same; and so it is from a file.
  what["name"] = "prefill.c0.ids";
  what["encoding"] = "int32";
  Made lent, loaded;
  ASSERT_EQ(label(shardproof_dump(attributes.dump().c_str(), &lent.object)), "");
  EXPECT_EQ(label(shardproof_dump_lend(lent.object, what.dump().c_str(), ids, 4 * 18)), "");
  EXPECT_EQ(label(shardproof_dump_lend(lent.object, what.dump().c_str(), ids, 4 * 17)),
            "dump_value");
  const Folder folder;
  const std::string file = folder / "t.h5";
  EXPECT_EQ(label(shardproof_dump_save(lent.object, file.c_str())), "");
  EXPECT_EQ(label(shardproof_dump_save(lent.object, (file + "/none").c_str())), "trace_c1");
  EXPECT_EQ(label(shardproof_dump_load(file.c_str(), &loaded.object)), "");
  for (ShardproofObject* same : {lent.object, loaded.object}) {
    Made other;
    ASSERT_EQ(label(shardproof_compare(same, nullptr, R"({"file": "mine"})", &other.object)), "");
    EXPECT_EQ(taken(shardproof_comparison(other.object, "json")),
              taken(shardproof_comparison(comparison.object, "json")));
  }
  for (const char* form : {"text", "quiet", "json", "html", "junit", "annotations"})
    EXPECT_NE(taken(shardproof_comparison(comparison.object, form))["text"], "") << form;
  EXPECT_EQ(label(shardproof_comparison(comparison.object, "pdf")), "binding_form");
  EXPECT_EQ(label(shardproof_compare(dump.object, nullptr, R"({"fail_on": "equal"})",
                                     &comparison.object)),
            "compare_fail_on");
}

/// One value of two dumps.
TEST(Binding, HoldsTwoDumpsAgainstEachOther) {
  Made reference, a, b, none, weights, pair;
  ASSERT_EQ(label(shardproof_reference(kLine, nullptr, &reference.object)), "");
  ASSERT_EQ(label(shardproof_weights_generate(kModel, 6, &weights.object)), "");
  const json attributes{{"format", "shardproof trace"}, {"version", 1}, {"case", kLine}};
  const auto* const numbers = static_cast<const float*>(
      shardproof_reference_data(reference.object, "prefill.c0.layer0.norm"));
  std::vector<float> wrong(numbers, numbers + 6 * 3 * 12);
  wrong[5] += 1;
  const json what{{"name", "prefill.c0.layer0.norm"}, {"encoding", "f32"}, {"shape", {6, 3, 12}}};
  for (const auto& [made, from] :
       {std::pair(&a, numbers), std::pair(&b, std::as_const(wrong).data())}) {
    ASSERT_EQ(label(shardproof_dump(attributes.dump().c_str(), &made->object)), "");
    ASSERT_EQ(label(shardproof_dump_add(made->object, what.dump().c_str(), from, 4 * 216)), "");
  }
  const auto told = [&](ShardproofObject* of_a, ShardproofObject* of_b, const char* request,
                        ShardproofObject* weights_b = nullptr) {
    Made found;
    if (const std::string error =
            label(shardproof_compare_pair(of_a, of_b, nullptr, weights_b, request, &found.object));
        !error.empty())
      return json(error);
    return json::parse(taken(shardproof_pair(found.object, "json"))["text"].get<std::string>());
  };
  const json same = told(a.object, a.object, R"({"files": ["x", "y"], "runs": 0})");
  EXPECT_EQ(same["verdict"], "explained");
  EXPECT_EQ(same["files"], (json{"x", "y"}));
  const json parted = told(a.object, b.object, R"({"runs": 0})");
  EXPECT_EQ(parted["first_of_b"], "prefill.c0.layer0.norm");
  EXPECT_TRUE(parted["first_of_a"].is_null());
  EXPECT_EQ(told(a.object, a.object, R"({"runs": 0})", weights.object)["differences"][0]["of"],
            "weights");
  EXPECT_EQ(told(a.object, b.object, R"({"plain": true})")["model"], false);
  EXPECT_EQ(told(a.object, b.object, R"({"same": true, "runs": 0})")["same"], true);
  const json other{{"case_of_b", std::string(kLine) + " regime=f32"}, {"runs", 0}};
  EXPECT_EQ(told(a.object, a.object, other.dump().c_str())["verdict"], "explained");
  EXPECT_EQ(told(a.object, none.object, "{}"), "binding_object");
  EXPECT_EQ(told(a.object, b.object, R"({"weights_file_of_b": "none.h5"})"), "weights_open");
  EXPECT_EQ(told(a.object, b.object, R"({"case_of_b": "batch=0"})").is_string(), true);
  ASSERT_EQ(label(shardproof_compare_pair(a.object, b.object, nullptr, nullptr, R"({"runs": 0})",
                                          &pair.object)),
            "");
  for (const char* form : {"text", "quiet", "json", "html"})
    EXPECT_NE(taken(shardproof_pair(pair.object, form))["text"], "") << form;
  EXPECT_EQ(label(shardproof_pair(pair.object, "junit")), "binding_form");
  EXPECT_EQ(label(shardproof_comparison(pair.object, "json")), "binding_object");
}

constexpr const char* kText = R"(model tiny
dim E d_model
dim V vocabulary
number eps
flag more
embedding
weight table : VE
embed : BLE = gather(table, ids, V)
layer
weight gain : E
weight bias : E if more
scaled : BLE = mul(in, gain)
out : BLE = add(scaled, bias) if more
out : BLE = scaled unless more
head
logits : BLV = einsum(BLE,VE->BLV; in, table)
)";
constexpr const char* kMap = R"(layers = n
E = width
V = words
eps = 1e-5
more = get(bias) == True
table < embed VE
gain < h.{n}.gain E
bias < h.{n}.bias E
ignore h.{n}.mask
out ~ h.{n} BLE
scaled ~ h.{n}.norm BLE input
)";

TEST(Binding, TakesTheTextOfAModelBehindItsLine) {
  const std::string line = std::string(
                               "torus=1x1x2 model=none.model,E=4,V=6,layers=2,more=0,eps=1 "
                               "batch=2 prompt=3 gen=1\n") +
                           kText;
  const json told = taken(shardproof_case(line.c_str()));
  const std::string whole = told["case"], model = told["model"];
  EXPECT_EQ(taken(shardproof_case(whole.c_str())), told);
  EXPECT_NE(whole.find("\nmodel tiny\n"), std::string::npos);
  Made weights, reference, dump, comparison;
  ASSERT_EQ(label(shardproof_weights_generate(model.c_str(), 1, &weights.object)), "");
  EXPECT_EQ(taken(shardproof_weights_list(weights.object))["model"], model);
  ASSERT_EQ(label(shardproof_reference(whole.c_str(), weights.object, &reference.object)), "");
  EXPECT_NE(shardproof_reference_data(reference.object, "prefill.c0.layer1.out"), nullptr);
  // A dump without a case is judged by one with its text.
  ASSERT_EQ(label(shardproof_dump(R"({"format": "shardproof trace", "version": 1})", &dump.object)),
            "");
  const json request{{"case", whole}};
  EXPECT_EQ(label(shardproof_compare(dump.object, weights.object, request.dump().c_str(),
                                     &comparison.object)),
            "");
  EXPECT_EQ(label(shardproof_case("model=none.model,E=4\nmodel a\nb")), "model_c0");
}

TEST(Binding, MapsAnotherProgramsModel) {
  const std::string model = std::string("tiny.model\n") + kText;
  const char* const config = R"({"n": 2, "width": 2, "words": 3, "window": 4})";
  Made mapped, weights;
  ASSERT_EQ(label(shardproof_mapped(model.c_str(), kMap, config, &mapped.object)), "");
  const json told = taken(shardproof_mapped_list(mapped.object));
  EXPECT_EQ(told["layers"], 2);
  EXPECT_EQ(told["extents"], (json{{"E", 2}, {"V", 3}}));
  EXPECT_EQ(told["unread"], (json{"window"}));
  EXPECT_EQ(told["modules"].size(), 4U);
  EXPECT_EQ(told["modules"][0], (json{{"value", "layer0.scaled"},
                                      {"name", "h.0.norm"},
                                      {"pattern", "BLE"},
                                      {"take", 0},
                                      {"input", true},
                                      {"dims", "BLE"}}));
  const std::vector<float> table{1, 2, 3, 4, 5, 6}, gain{7, 8};
  const float* const data[] = {table.data(), gain.data(), gain.data(), nullptr, nullptr};
  const char* const tensors = R"([{"name": "embed", "shape": [3, 2]},
    {"name": "h.0.gain", "shape": [2]}, {"name": "h.1.gain", "shape": [2]},
    {"name": "h.1.mask", "shape": [0]}, {"name": "h.1.bias", "shape": [0]}])";
  const json read = taken(shardproof_mapped_weights(mapped.object, tensors, data, &weights.object));
  EXPECT_EQ(read["unread"], (json{"h.1.bias"}));
  EXPECT_EQ(shardproof_weights_data(weights.object, "layer1.gain")[1], 8.0F);
  Made none;
  EXPECT_EQ(label(shardproof_mapped_weights(mapped.object, "[]", data, &none.object)),
            "model_map_c4");
  EXPECT_EQ(label(shardproof_mapped_files(mapped.object, "none", &none.object)), "tensors_open");
  EXPECT_EQ(label(shardproof_mapped_list(weights.object)), "binding_object");
  EXPECT_EQ(label(shardproof_mapped(model.c_str(), kMap, "[", &none.object)), "model_map_f3");
  EXPECT_EQ(label(shardproof_mapped(model.c_str(), kMap, "{}", &none.object)), "model_map_c2");
  EXPECT_EQ(label(shardproof_mapped(model.c_str(), "a b", config, &none.object)), "model_map_c0");
  EXPECT_EQ(none.object, nullptr);
}

TEST(Binding, RefusesWhatIsNoObjectOfItsKindAndWhatIsNoJson) {
  Made weights, out;
  ASSERT_EQ(label(shardproof_weights_generate(kModel, 1, &weights.object)), "");
  for (ShardproofObject* wrong : {weights.object, static_cast<ShardproofObject*>(nullptr)}) {
    EXPECT_EQ(label(shardproof_compare(wrong, nullptr, "{}", &out.object)), "binding_object");
    EXPECT_EQ(label(shardproof_dump_add(wrong, "{}", nullptr, 0)), "binding_object");
    EXPECT_EQ(label(shardproof_dump_lend(wrong, "{}", nullptr, 0)), "binding_object");
    EXPECT_EQ(label(shardproof_dump_save(wrong, "t.h5")), "binding_object");
    EXPECT_EQ(label(shardproof_reference_list(wrong)), "binding_object");
    EXPECT_EQ(label(shardproof_comparison(wrong, "text")), "binding_object");
    EXPECT_EQ(shardproof_reference_data(wrong, "x"), nullptr);
  }
  EXPECT_EQ(label(shardproof_weights_list(nullptr)), "binding_object");
  for (const char* wrong : {"", "{", "[1", "nul"})
    EXPECT_EQ(label(shardproof_dump(wrong, &out.object)), "binding_json") << wrong;
  EXPECT_EQ(out.object, nullptr);
  Made dump;
  ASSERT_EQ(label(shardproof_dump("{}", &dump.object)), "");
  EXPECT_EQ(label(shardproof_dump_add(dump.object, "{}", nullptr, 0)), "binding_json");
  EXPECT_EQ(label(shardproof_blocks("BLE", "2x1x1", "[2, 3]")), "layout_rank");
  EXPECT_EQ(label(shardproof_blocks("BLE", "2x1x1", "{}")), "binding_json");
}

TEST(Binding, LetsNoExceptionPass) {
  EXPECT_EQ(label(answer([]() -> json { throw std::runtime_error("any"); })), "binding_failed");
  EXPECT_EQ(label(answer([]() -> json { throw std::bad_alloc(); })), "memory_c1");
  EXPECT_EQ(label(shardproof_case("torus=\xff")), "torus_c0");
  shardproof_free(nullptr);
  shardproof_release(nullptr);
}

}  // namespace
}  // namespace shardproof::binding
