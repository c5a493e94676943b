// Weights that are read when they are asked for, as those of large models are.
#include "tests/weights/on_demand.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cstdint>
#include <cstring>
#include <limits>
#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "tests/weights/changed_file.h"
#include "tests/weights/expect_error.h"
#include "tests/weights/folder.h"
#include "tests/weights/random_model.h"
#include "weights/model/registry.h"
#include "weights/storage/fold.h"
#include "weights/storage/generator.h"
#include "weights/storage/store.h"
#include "weights/storage/weights.h"

namespace shardproof {
namespace {

/// Four vectors of 4, 8, 12 and 16 bytes.
Weights vectors(std::size_t room, std::vector<std::string>& read) {
  std::map<std::string, Tensor> tensors;
  for (const char name : {'a', 'b', 'c', 'd'})
    tensors.emplace(std::string(1, name), Tensor({name - 'a' + 1}, static_cast<float>(name)));
  return on_demand(Weights(ModelConfig(), std::move(tensors)), room,
                   [&read](const std::string& name) { read.push_back(name); });
}

using Names = std::vector<std::string>;

TEST(WeightsOnDemand, WhatFitsTogetherIsReadAtOnce) {
  Names read;
  const Weights all = vectors(40, read);
  EXPECT_FALSE(all.on_demand());
  EXPECT_EQ(read, (Names{"a", "b", "c", "d"}));
  EXPECT_EQ(all.at("c")->data, (std::vector<float>(3, 'c')));
  EXPECT_EQ(read.size(), 4U);
}

TEST(WeightsOnDemand, NamesAndShapesAreKnownWithoutReading) {
  Names read;
  const Weights of = vectors(39, read);
  EXPECT_TRUE(of.on_demand());
  EXPECT_EQ(of.names(), (Names{"a", "b", "c", "d"}));
  EXPECT_EQ(of.shape("d"), Shape{4});
  EXPECT_TRUE(of.contains("d"));
  EXPECT_FALSE(of.contains("e"));
  EXPECT_EQ(of.find("e"), nullptr);
  EXPECT_EQ(label_of([&] { of.at("e"); }), "weights_name");
  EXPECT_EQ(label_of([&] { of.shape("e"); }), "weights_name");
  EXPECT_TRUE(read.empty());
}

TEST(WeightsOnDemand, ThoseUsedLongestAgoAreGivenUp) {
  Names read;
  const Weights of = vectors(16, read);
  of.at("a"), of.at("c"), of.at("a");  // 16 bytes
  EXPECT_EQ(read, (Names{"a", "c"}));
  of.at("b");  // c was used before a
  EXPECT_EQ(read, (Names{"a", "c", "b"}));
  of.at("a"), of.at("b");
  EXPECT_EQ(read.size(), 3U);
  of.at("d");  // takes all the room
  of.at("d");
  EXPECT_EQ(read, (Names{"a", "c", "b", "d"}));
  of.at("a");
  EXPECT_EQ(read.size(), 5U);
}

TEST(WeightsOnDemand, WhatIsLentStaysAndTakesRoom) {
  Names read;
  const Weights of = vectors(16, read);
  const auto c = of.at("c");
  of.at("a");
  of.at("b");  // a goes, c cannot
  EXPECT_EQ(of.at("c"), c);
  EXPECT_EQ(read, (Names{"c", "a", "b"}));
  of.at("a");  // 18 bytes with b and c: b goes
  of.at("b");
  EXPECT_EQ(read, (Names{"c", "a", "b", "a", "b"}));
  of.at("a");  // b took its room, beside c
  EXPECT_EQ(read.size(), 6U);
  of.at("b");  // and a took b's
  EXPECT_EQ(read.size(), 7U);
}

TEST(WeightsOnDemand, OneThatDoesNotFitStaysUntilAnotherIsAskedFor) {
  Names read;
  const Weights of = vectors(15, read);
  auto d = of.at("d");
  EXPECT_EQ(of.at("d"), d);
  EXPECT_EQ(read.size(), 1U);
  d = nullptr;
  of.at("d");
  EXPECT_EQ(read.size(), 1U);
  of.at("a");
  EXPECT_EQ(read, (Names{"d", "a"}));
  of.at("d");
  EXPECT_EQ(read, (Names{"d", "a", "d"}));
}

/// Whatever is asked for and lent, what is asked for again at once is not read again, and what is
/// lent is the same tensor.
RC_GTEST_PROP(WeightsOnDemand, EachIsWhatItIsWhateverIsLent, ()) {
  Names read;
  const Weights of = vectors(*rc::gen::inRange<std::size_t>(0, 40), read);
  std::map<std::string, std::shared_ptr<const Tensor>> lent;
  for (const int draw : *rc::gen::container<std::vector<int>>(rc::gen::inRange(0, 8))) {
    const std::string name(1, static_cast<char>('a' + draw % 4));
    const auto length = static_cast<std::size_t>(draw % 4 + 1);
    const auto tensor = of.at(name);
    RC_ASSERT(tensor->data == std::vector<float>(length, static_cast<float>(name[0])));
    const std::size_t before = read.size();
    RC_ASSERT(of.at(name) == tensor);
    RC_ASSERT(read.size() == before);
    for (const auto& [other, held] : lent) RC_ASSERT(of.at(other) == held);
    RC_ASSERT(read.size() == before);
    if (draw < 4) lent[name] = tensor;
    if (draw >= 4) lent.erase(name);
  }
}

TEST(WeightsOnDemand, ThreadsReadEachOnce) {
  std::vector<std::string> read;
  const Weights of = vectors(39, read);
  std::vector<std::shared_ptr<const Tensor>> lent(64);
  std::vector<std::jthread> threads;
  for (std::size_t t = 0; t < 8; ++t)
    threads.emplace_back([&, t] {
      for (std::size_t i = t; i < lent.size(); i += 8)
        lent[i] = of.at(std::string(1, static_cast<char>('a' + i % 4)));
    });
  threads.clear();
  EXPECT_EQ(read.size(), 4U);
  for (std::size_t i = 4; i < lent.size(); ++i) EXPECT_EQ(lent[i], lent[i % 4]);
}

TEST(WeightsOnDemand, WhatReadingThrowsIsThrownEachTime) {
  const Weights of(
      ModelConfig(), {{"a", {1}}},
      [](const std::string& name) -> Tensor { throw Error("weights_value", name); },
      NumberFormat::f32, 0);
  EXPECT_EQ(message_of([&] { of.at("a"); }), "weights_value: a");
  EXPECT_EQ(message_of([&] { of.at("a"); }), "weights_value: a");
}

TEST(WeightsOnDemand, AreValidatedByNameAndShape) {
  const auto label = [](auto&& change) {
    const Weights whole = generate_weights(parse_model("palm-tiny"), 1);
    std::map<std::string, Tensor> tensors = whole.tensors();
    change(tensors);
    return label_of([&] { validate(on_demand(Weights(whole.config(), std::move(tensors)))); });
  };
  EXPECT_EQ(label([](auto&) {}), "");
  EXPECT_EQ(label([](auto& t) { t.erase("layer0.wq"); }), "weights_name");
  EXPECT_EQ(label([](auto& t) { t["layer9.wq"] = t["layer0.wq"]; }), "weights_name");
  EXPECT_EQ(label([](auto& t) { t["layer0.wq"] = t["layer0.wk"]; }), "weights_shape");
}

/// Returns whether both have the same tensors, bit for bit.
bool same(const Weights& a, const Weights& b) {
  if (!(a.config() == b.config()) || a.stored_type() != b.stored_type() || a.names() != b.names())
    return false;
  for (const std::string& name : a.names()) {
    const auto x = a.at(name), y = b.at(name);
    if (x->shape != y->shape || a.shape(name) != b.shape(name) ||
        std::memcmp(x->data.data(), y->data.data(), x->data.size() * sizeof(float)) != 0)
      return false;
  }
  return true;
}

RC_GTEST_PROP(WeightsOnDemand, AreThoseInMemory, ()) {
  const ModelConfig config = draw_model(12);
  const auto seed = *rc::gen::arbitrary<std::uint64_t>();
  const Weights all = generate_weights(config, seed), each = generate_weights(config, seed, 0);
  RC_ASSERT(!all.on_demand() && each.on_demand());
  RC_ASSERT(same(all, each));
  RC_ASSERT(each.tensors().size() == all.names().size());
  for (const auto& [name, tensor] : each.tensors()) RC_ASSERT(tensor.data == all.at(name)->data);
  const Weights rounded = stored_as(each, NumberFormat::bf16);
  RC_ASSERT(rounded.on_demand());
  RC_ASSERT(same(stored_as(all, NumberFormat::bf16), rounded));
  if (config.softmax == Softmax::base_e) {
    RC_ASSERT(fold(each).on_demand());
    RC_ASSERT(same(fold(all), fold(each)));
  }
  const Folder folder;
  save_weights(each, folder / "each.h5");
  save_weights(all, folder / "all.h5");
  RC_ASSERT(bytes_of(folder / "each.h5") == bytes_of(folder / "all.h5"));
  const Weights loaded = load_weights(folder / "all.h5", 0);
  RC_ASSERT(loaded.on_demand());
  RC_ASSERT(same(loaded, all));
  const Weights codes = int8_of(config, seed);
  save_weights(codes, folder / "codes.h5");
  RC_ASSERT(same(load_weights(folder / "codes.h5", 0), codes));
}

TEST(WeightsOnDemand, OverflowOfBf16IsFoundInTheWeightThatHasIt) {
  const Weights whole = generate_weights(parse_model("palm-tiny"), 1);
  std::map<std::string, Tensor> tensors = whole.tensors();
  tensors.at("layer1.wq").data[3] = std::numeric_limits<float>::max();
  const Weights rounded =
      stored_as(on_demand(Weights(whole.config(), std::move(tensors))), NumberFormat::bf16);
  EXPECT_EQ(label_of([&] { rounded.at("layer0.wq"); }), "");
  EXPECT_EQ(label_of([&] { rounded.at("layer1.wq"); }), "weights_value");
}

TEST(WeightsOnDemand, AFoldThatOverflowsIsFoundInTheWeightThatHasIt) {
  // The factor of wq is 1.44/sqrt(Q), above 1 for Q of 2 alone.
  const ModelConfig narrow = parse_model("palm-tiny,layers=2,Q=2");
  const Weights plain = generate_weights(narrow, 1);
  std::map<std::string, Tensor> large = plain.tensors();
  large.at("layer1.wq").data[3] = std::numeric_limits<float>::max();
  const Weights of(narrow, std::move(large));
  EXPECT_EQ(label_of([&] { fold(of); }), "weights_value");
  const Weights folded = fold(on_demand(of));
  EXPECT_EQ(label_of([&] { folded.at("layer0.wq"); }), "");
  EXPECT_EQ(label_of([&] { folded.at("layer1.wq"); }), "weights_value");
}

TEST(WeightsOnDemand, AFileIsCheckedWhole) {
  const Folder folder;
  const Weights whole = generate_weights(parse_model("palm-tiny"), 1);
  save_weights(whole, folder / "w.h5");
  std::vector<char> bytes = bytes_of(folder / "w.h5");
  const auto data = whole.at("layer1.wq");
  const char* const from = reinterpret_cast<const char*>(data->data.data());
  const auto at = std::search(bytes.begin(), bytes.end(), from, from + 64);
  ASSERT_NE(at, bytes.end());
  at[5] = static_cast<char>(at[5] ^ 1);
  write_bytes(folder / "w.h5", bytes);
  EXPECT_EQ(label_of([&] { load_weights(folder / "w.h5", 0); }), "weights_checksum");
}

TEST(WeightsOnDemand, AFileThatIsReplacedStaysTheOneThatWasOpened) {
  const Folder folder;
  const Weights first = generate_weights(parse_model("palm-tiny"), 1);
  save_weights(first, folder / "w.h5");
  const Weights loaded = load_weights(folder / "w.h5", 0);
  save_weights(generate_weights(parse_model("palm-tiny"), 2), folder / "w.h5");
  EXPECT_TRUE(same(loaded, first));
}

TEST(WeightsOnDemand, MemoryIsThatOfTheLargestBesideTheRoom) {
  const auto spec = [](std::int64_t elements) {
    WeightSpec of{};
    of.shape = {elements};
    return of;
  };
  EXPECT_EQ(bytes_in_memory({spec(3), spec(5)}), 32.0);
  const std::int64_t room = std::int64_t{Weights::kRoom} / 4;
  EXPECT_EQ(bytes_in_memory({spec(room), spec(7)}), 4.0 * static_cast<double>(room + 7));
  EXPECT_EQ(bytes_in_memory({spec(room), spec(9), spec(room)}), 8.0 * static_cast<double>(room));
  WeightSpec first = spec(room), second = spec(room), third = spec(room);
  first.name = "layer0.wq", second.name = "layer0.wk", third.name = "layer1.wq";
  EXPECT_EQ(bytes_in_memory({first, second, third, spec(5)}), 12.0 * static_cast<double>(room));
  EXPECT_EQ(bytes_in_memory({first, third, third, third}),
            4.0 * 3 * static_cast<double>(room) + 4.0 * static_cast<double>(room));
}

}  // namespace
}  // namespace shardproof
