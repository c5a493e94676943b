#include "weights/maps/config_formula.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace shardproof {

class ConfigFormula::Evaluation {
 public:
  Evaluation(const ConfigFormula& formula, const Names& names) : formula_(formula), names_(names) {}

  Value of(const Part& part) const {
    switch (part.kind) {
      case Kind::literal:
        return part.literal;
      case Kind::name: {
        std::optional<Value> value = names_(part.word);
        if (!value) fail(fmt::format("the config has no {}", part.word));
        return within_64_bits(*std::move(value));
      }
      case Kind::list: {
        Value list = Value::array();
        for (const Part& arg : part.args) list.push_back(of(arg));
        return list;
      }
      case Kind::dict: {
        Value dict = Value::object();
        for (std::size_t i = 0; i < part.args.size(); ++i) dict[part.keys[i]] = of(part.args[i]);
        return dict;
      }
      case Kind::index:
        return within_64_bits(index(of(part.args[0]), of(part.args[1])));
      case Kind::call:
        return call(part);
      case Kind::unary: {
        const Value x = of(part.args[0]);
        if (part.word == "not") return !truth(x);
        return x.is_number_integer() ? arithmetic("-", Value(0), x) : Value(-number(x));
      }
      case Kind::binary:
        return binary(part);
      case Kind::choice:
        return of(part.args[truth(of(part.args[0])) ? 1 : 2]);
    }
    return {};
  }

 private:
  [[noreturn]] void fail(const std::string& why) const {
    throw Error("model_map_c2", fmt::format("'{}': {}", formula_.text_, why));
  }

  /// JSON has whole numbers of 64 bits without a sign, which std::int64_t has not.
  Value within_64_bits(Value x) const {
    if (x.is_number_unsigned() && !std::in_range<std::int64_t>(x.get<std::uint64_t>()))
      fail(fmt::format("{} is beyond 64 bits", shown(x)));
    return x;
  }

  static bool truth(const Value& x) {
    if (x.is_boolean()) return x.get<bool>();
    if (x.is_number()) return x.get<double>() != 0.0;
    if (x.is_string()) return !x.get_ref<const std::string&>().empty();
    return !x.empty();
  }

  double number(const Value& x) const {
    if (x.is_boolean()) return x.get<bool>() ? 1.0 : 0.0;
    if (!x.is_number()) fail(fmt::format("{} is not a number", shown(x)));
    return x.get<double>();
  }

  Value finite(double x) const {
    if (!std::isfinite(x)) fail(fmt::format("{} is not finite", x));
    return x;
  }

  Value index(const Value& of, const Value& at) const {
    const std::string asked = fmt::format("[{}]", shown(at));
    if (of.is_object() && at.is_string()) {
      const auto found = of.find(at.get_ref<const std::string&>());
      if (found == of.end()) fail(fmt::format("{} has no {}", shown(of), asked));
      return *found;
    }
    if (!of.is_array() || !at.is_number_integer())
      fail(fmt::format("{} has no {}", shown(of), asked));
    const auto size = static_cast<std::int64_t>(of.size());
    const auto place = at.get<std::int64_t>();
    if (place < -size || place >= size) fail(fmt::format("a list of {} has no {}", size, asked));
    return of[static_cast<std::size_t>(place < 0 ? place + size : place)];
  }

  /// + - * // % of whole numbers stay whole; // and % round down, as in Python.
  Value arithmetic(std::string_view op, const Value& a, const Value& b) const {
    if (a.is_number_integer() && b.is_number_integer() && op != "/" && op != "**") {
      const auto x = a.get<std::int64_t>(), y = b.get<std::int64_t>();
      std::int64_t result = 0;
      bool beyond = false;
      if (op == "+") beyond = __builtin_add_overflow(x, y, &result);
      if (op == "-") beyond = __builtin_sub_overflow(x, y, &result);
      if (op == "*") beyond = __builtin_mul_overflow(x, y, &result);
      if (op == "//" || op == "%") {
        if (y == 0) fail("division by zero");
        beyond = y == -1 && __builtin_sub_overflow(std::int64_t{0}, x, &result);
        if (y != -1) {
          const std::int64_t down = x / y - (x % y != 0 && (x < 0) != (y < 0) ? 1 : 0);
          result = op == "%" ? x - down * y : down;
        } else if (op == "%") {
          result = 0;
        }
      }
      if (beyond) fail(fmt::format("{} {} {} is beyond 64 bits", x, op, y));
      return result;
    }
    const double x = number(a), y = number(b);
    if (op == "+") return finite(x + y);
    if (op == "-") return finite(x - y);
    if (op == "*") return finite(x * y);
    if (op == "**") {
      const double power = std::pow(x, y);
      const bool whole = a.is_number_integer() && b.is_number_integer() && y >= 0;
      if (whole && std::abs(power) < 9007199254740992.0) return static_cast<std::int64_t>(power);
      return finite(power);
    }
    if (y == 0.0) fail("division by zero");
    if (op == "/") return finite(x / y);
    const double down = std::floor(x / y);
    return finite(op == "//" ? down : x - down * y);
  }

  Value binary(const Part& part) const {
    const Value a = of(part.args[0]);
    if (part.word == "and") return truth(a) ? of(part.args[1]) : a;
    if (part.word == "or") return truth(a) ? a : of(part.args[1]);
    const Value b = of(part.args[1]);
    if (part.word == "==") return a == b;
    if (part.word == "!=") return a != b;
    if (part.word == "in") {
      if (b.is_object() && a.is_string()) return b.contains(a.get_ref<const std::string&>());
      if (!b.is_array()) fail(fmt::format("{} is not a list", shown(b)));
      return std::find(b.begin(), b.end(), a) != b.end();
    }
    if (part.word == "<") return number(a) < number(b);
    if (part.word == ">") return number(a) > number(b);
    if (part.word == "<=") return number(a) <= number(b);
    if (part.word == ">=") return number(a) >= number(b);
    return arithmetic(part.word, a, b);
  }

  Value call(const Part& part) const {
    if (part.word == "get") {
      if (part.args.size() != 1 || part.args[0].kind != Kind::name)
        fail("get takes the name of an entry");
      return within_64_bits(names_(part.args[0].word).value_or(Value()));
    }
    std::vector<Value> args;
    for (const Part& arg : part.args) args.push_back(of(arg));
    const auto one = [&]() -> const Value& {
      if (args.size() != 1) fail(fmt::format("{} takes one value", part.word));
      return args[0];
    };
    if (part.word == "len") {
      if (!one().is_array() && !one().is_object())
        fail(fmt::format("{} has no length", shown(one())));
      return static_cast<std::int64_t>(one().size());
    }
    if (part.word == "sqrt") return finite(std::sqrt(number(one())));
    if (part.word == "log") return finite(std::log(number(one())));
    if (part.word == "abs") return number(one()) < 0 ? arithmetic("*", one(), Value(-1)) : one();
    if (part.word == "int" || part.word == "round") {
      const double x = number(one());
      // Half to even, as Python rounds.
      const double whole = part.word == "int" ? std::trunc(x) : std::nearbyint(x);
      if (!(std::abs(whole) < 9007199254740992.0)) fail(fmt::format("{} is beyond 2^53", x));
      return static_cast<std::int64_t>(whole);
    }
    if ((part.word == "min" || part.word == "max") && !args.empty()) {
      std::size_t best = 0;
      for (std::size_t i = 1; i < args.size(); ++i) {
        const double x = number(args[i]), y = number(args[best]);
        if (part.word == "min" ? x < y : x > y) best = i;
      }
      return args[best];
    }
    fail(
        fmt::format("{} is not a function of values; legal: abs, get, int, len, log, max, "
                    "min, round, sqrt",
                    part.word));
  }

  const ConfigFormula& formula_;
  const Names& names_;
};

std::string ConfigFormula::shown(const Value& value) {
  return value.dump(-1, ' ', false, Value::error_handler_t::replace).substr(0, 80);
}

ConfigFormula::Value ConfigFormula::value(const Names& names) const {
  return Evaluation(*this, names).of(whole_);
}

std::string_view ConfigFormula::called() const {
  return whole_.kind == Kind::call ? std::string_view(whole_.word) : std::string_view();
}

std::vector<ConfigFormula::Value> ConfigFormula::arguments(const Names& names) const {
  std::vector<Value> values;
  for (const Part& arg : whole_.args) values.push_back(Evaluation(*this, names).of(arg));
  return values;
}

}  // namespace shardproof
