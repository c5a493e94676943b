// Contractions as text.
#include <fmt/format.h>

#include "engine/ops/einsum.h"
#include "weights/base/error.h"

namespace shardproof {

EinsumSpec EinsumSpec::parse(std::string_view text) {
  const auto malformed = [&] {
    return Error("einsum_c0",
                 fmt::format("'{}' is not a valid einsum; write BLE,EF->BLF, several terms "
                             "joined by ' + '",
                             text));
  };
  EinsumSpec spec;
  std::string_view rest = text;
  for (;;) {
    const auto plus = rest.find(" + ");
    const std::string_view part = rest.substr(0, plus);
    const auto comma = part.find(',');
    const auto arrow = part.find("->");
    if (comma == std::string_view::npos || arrow == std::string_view::npos || arrow < comma)
      throw malformed();
    Term term{std::string(part.substr(0, comma)),
              std::string(part.substr(comma + 1, arrow - comma - 1)),
              std::string(part.substr(arrow + 2))};
    for (const std::string* letters : {&term.a, &term.b, &term.result})
      for (std::size_t i = 0; i < letters->size(); ++i)
        if (!Layout::is_letter((*letters)[i]) || letters->find((*letters)[i]) != i)
          throw malformed();
    if (term.a.empty() || term.b.empty()) throw malformed();
    spec.terms.push_back(std::move(term));
    if (plus == std::string_view::npos) return spec;
    rest = rest.substr(plus + 3);
  }
}

std::string EinsumSpec::to_string() const {
  std::string text;
  for (const Term& term : terms)
    text += (text.empty() ? "" : " + ") + term.a + "," + term.b + "->" + term.result;
  return text;
}

std::string EinsumSpec::contracted(const Term& term) {
  std::string letters;
  for (char c : term.a)
    if (term.b.find(c) != std::string::npos && term.result.find(c) == std::string::npos)
      letters += c;
  return letters;
}

}  // namespace shardproof
