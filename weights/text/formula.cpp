#include "weights/text/formula.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "weights/base/detail/words.h"
#include "weights/text/detail/names.h"

namespace shardproof {
namespace {

constexpr std::size_t kMostParts = 64;

}  // namespace

std::optional<double> number_in(std::string_view literal) {
  const bool negative = literal.starts_with('-');
  const std::string_view digits = literal.substr(negative ? 1 : 0);
  double value = 0.0;
  if (digits == "inf") {
    value = std::numeric_limits<double>::infinity();
  } else {
    if (digits.empty() || digits[0] < '0' || digits[0] > '9') return std::nullopt;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  }
  return negative ? -value : value;
}

/// Recursive descent, from the weakest operator to the strongest.
class Formula::Reader {
 public:
  explicit Reader(std::string_view text) : whole_(text), rest_(trim(text)) {}

  std::vector<Part> read() {
    sum();
    if (!rest_.empty()) fail();
    return std::move(parts_);
  }

 private:
  [[noreturn]] void fail() const {
    throw Error("model_c0", fmt::format("'{}' is not a formula over extents and numbers, such as "
                                        "H // K, Q ** -0.5 or 1 / sqrt(Q)",
                                        whole_.substr(0, 80)));
  }

  bool take(std::string_view token) {
    if (!rest_.starts_with(token)) return false;
    rest_ = trim(rest_.substr(token.size()));
    return true;
  }

  std::size_t put(Kind kind, std::string text, std::size_t a = 0, std::size_t b = 0) {
    if (parts_.size() == kMostParts) fail();
    parts_.push_back({kind, std::move(text), a, b});
    return parts_.size() - 1;
  }

  std::size_t sum() {
    if (++depth_ > kMostParts) fail();
    std::size_t left = product();
    for (;;) {
      const Kind kind = rest_.starts_with('+') ? Kind::sum : Kind::difference;
      if (!take("+") && !take("-")) break;
      left = put(kind, "", left, product());
    }
    --depth_;
    return left;
  }

  std::size_t product() {
    std::size_t left = sign();
    for (;;) {
      if (take("//"))
        left = put(Kind::whole_quotient, "", left, sign());
      else if (take("/"))
        left = put(Kind::quotient, "", left, sign());
      else if (!rest_.starts_with("**") && take("*"))
        left = put(Kind::product, "", left, sign());
      else
        return left;
    }
  }

  std::size_t sign() {
    if (!take("-")) return power();
    if (++depth_ > kMostParts) fail();
    const std::size_t inner = sign();
    --depth_;
    return put(Kind::negative, "", inner);
  }

  std::size_t power() {
    const std::size_t base = atom();
    return take("**") ? put(Kind::power, "", base, sign()) : base;
  }

  std::size_t atom() {
    if (take("(")) {
      const std::size_t inner = sum();
      if (!take(")")) fail();
      return inner;
    }
    std::size_t length = 0;
    while (length < rest_.size() &&
           (is_name_char(rest_[length]) || rest_[length] == '.' ||
            (length > 0 && rest_[0] >= '0' && rest_[0] <= '9' &&
             (rest_[length] == '-' || rest_[length] == '+') && rest_[length - 1] == 'e')))
      ++length;
    const std::string word(rest_.substr(0, length));
    rest_ = trim(rest_.substr(length));
    if (number_in(word)) return put(Kind::number, word);
    if (!is_model_name(word)) fail();
    if (word != "sqrt") return put(Kind::name, word);
    if (!take("(")) fail();
    const std::size_t inner = sum();
    if (!take(")")) fail();
    return put(Kind::square_root, "", inner);
  }

  std::string_view whole_, rest_;
  std::vector<Part> parts_;
  std::size_t depth_ = 0;
};

Formula Formula::parse(std::string_view text) {
  Formula formula;
  formula.parts_ = Reader(text).read();
  return formula;
}

double Formula::value(const Names& names) const {
  const double value = at(parts_.size() - 1, names);
  if (std::isnan(value) || (std::isinf(value) && parts_.size() > 2))
    throw Error("model_c14", fmt::format("{} is {}, not a finite number", to_string(), value));
  return value;
}

double Formula::at(std::size_t part, const Names& names) const {
  const Part& p = parts_[part];
  const auto a = [&] { return at(p.a, names); };
  const auto b = [&] { return at(p.b, names); };
  switch (p.kind) {
    case Kind::number:
      return *number_in(p.text);
    case Kind::name:
      if (const auto known = names(p.text)) return *known;
      throw Error("model_c1", fmt::format("{} has no value", p.text));
    case Kind::negative:
      return -a();
    case Kind::square_root:
      return std::sqrt(a());
    case Kind::sum:
      return a() + b();
    case Kind::difference:
      return a() - b();
    case Kind::product:
      return a() * b();
    case Kind::quotient:
      return a() / b();
    case Kind::whole_quotient:
      return std::floor(a() / b());
    case Kind::power:
      break;
  }
  const double base = a(), exponent = b();
  if (exponent == 0.5) return std::sqrt(base);
  if (exponent == -0.5) return 1.0 / std::sqrt(base);
  return std::pow(base, exponent);
}

std::vector<std::string> Formula::names() const {
  std::vector<std::string> names;
  for (const Part& part : parts_)
    if (part.kind == Kind::name && std::find(names.begin(), names.end(), part.text) == names.end())
      names.push_back(part.text);
  return names;
}

std::string Formula::to_string() const { return print(parts_.size() - 1, 0); }

std::string Formula::print(std::size_t part, int outer) const {
  const Part& p = parts_[part];
  const auto infix = [&](int own, std::string_view sign) {
    const std::string text = fmt::format("{} {} {}", print(p.a, own), sign, print(p.b, own + 1));
    return outer > own ? "(" + text + ")" : text;
  };
  switch (p.kind) {
    case Kind::number:
    case Kind::name:
      return p.text;
    case Kind::square_root:
      return "sqrt(" + print(p.a, 0) + ")";
    case Kind::negative:
      return outer > 3 ? "(-" + print(p.a, 3) + ")" : "-" + print(p.a, 3);
    case Kind::sum:
      return infix(1, "+");
    case Kind::difference:
      return infix(1, "-");
    case Kind::product:
      return infix(2, "*");
    case Kind::quotient:
      return infix(2, "/");
    case Kind::whole_quotient:
      return infix(2, "//");
    case Kind::power:
      break;
  }
  const std::string text = fmt::format("{} ** {}", print(p.a, 5), print(p.b, 3));
  return outer > 4 ? "(" + text + ")" : text;
}

}  // namespace shardproof
