#include "weights/model/sampling.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>

namespace shardproof {
namespace {

constexpr std::array<std::string_view, 4> kKeys{"sample", "temperature", "top_k", "top_p"};

[[noreturn]] void illegal(std::string_view key, std::string_view value, std::string_view why) {
  throw Error("case_sampling", fmt::format("{}={}: {}", key, value, why));
}

template <class Number>
Number read_number(std::string_view key, const std::string& text, std::string_view what) {
  Number value{};
  const char* const end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || at != end) illegal(key, text, fmt::format("{} is expected", what));
  return value;
}

void require_temperature(double T) {
  if (!(T > 0))
    illegal("temperature", fmt::format("{}", T),
            "must be above 0; the nearest legal: sample=greedy, which takes the largest logit");
  if (!std::isfinite(T)) illegal("temperature", fmt::format("{}", T), "must be finite");
}

void require_top_p(double p) {
  if (!(p > 0))
    illegal("top_p", fmt::format("{}", p),
            "must be above 0 and at most 1; the nearest legal: top_k=1, which keeps the largest");
  if (p > 1)
    illegal("top_p", fmt::format("{}", p),
            "must be above 0 and at most 1; the nearest legal: top_p=1");
}

void require_top_k(std::int64_t k) {
  if (k < 1)
    illegal("top_k", fmt::format("{}", k), "must be at least 1; the nearest legal: top_k=1");
}

}  // namespace

std::span<const std::string_view> sampling_keys() { return kKeys; }

std::string_view to_string(Sample sample) { return sample == Sample::greedy ? "greedy" : "random"; }

Sampling read_sampling(const std::function<const std::string*(std::string_view key)>& given) {
  Sampling sampling;
  const std::string* const sample = given("sample");
  for (const std::string_view key : kKeys)
    if (const std::string* const value = given(key); value != nullptr && key != "sample") {
      if (sample != nullptr && *sample == to_string(Sample::greedy))
        illegal(key, *value,
                fmt::format("has no effect beside sample=greedy; legal: sample=random, or leave "
                            "{} out",
                            key));
      sampling.sample = Sample::random;
    }
  if (sample != nullptr) {
    if (*sample != to_string(Sample::greedy) && *sample != to_string(Sample::random))
      illegal("sample", fmt::format("{:?}", *sample), "legal: greedy, random");
    sampling.sample = *sample == to_string(Sample::random) ? Sample::random : Sample::greedy;
  }
  if (const std::string* const v = given("temperature")) {
    sampling.temperature = read_number<double>("temperature", *v, "a number");
    require_temperature(sampling.temperature);
  }
  if (const std::string* const v = given("top_k")) {
    sampling.top_k = read_number<std::int64_t>("top_k", *v, "a whole number");
    require_top_k(sampling.top_k);
  }
  if (const std::string* const v = given("top_p")) {
    sampling.top_p = read_number<double>("top_p", *v, "a number");
    require_top_p(sampling.top_p);
  }
  return sampling;
}

std::string print_sampling(const Sampling& sampling) {
  if (sampling == Sampling()) return "";
  std::string text = fmt::format(" sample={}", to_string(sampling.sample));
  if (sampling.temperature != 1.0) text += fmt::format(" temperature={}", sampling.temperature);
  if (sampling.top_k != 0) text += fmt::format(" top_k={}", sampling.top_k);
  if (sampling.top_p != 1.0) text += fmt::format(" top_p={}", sampling.top_p);
  return text;
}

void validate(const Sampling& sampling, std::int64_t V) {
  if (sampling.sample == Sample::greedy && !(sampling == Sampling()))
    throw Error("case_sampling",
                "temperature, top_k and top_p have no effect beside sample=greedy; legal: "
                "sample=random, or leave them out");
  require_temperature(sampling.temperature);
  require_top_p(sampling.top_p);
  if (sampling.top_k != 0) require_top_k(sampling.top_k);
  if (sampling.top_k > V)
    illegal("top_k", fmt::format("{}", sampling.top_k),
            fmt::format("the vocabulary has V={0}; the nearest legal: top_k={0}", V));
}

}  // namespace shardproof
