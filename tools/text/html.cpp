#include "tools/text/html.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace shardproof::tools {
namespace {

// Every colour is of text or of a border, beside a character that says the same.
constexpr const char* kStyle = R"css(
:root { color-scheme: light dark; --text: #1b1f24; --back: #fff; --line: #c9d0d8; --dim: #59636e;
  --right: #11691f; --weak: #7d4a00; --wrong: #a4000f; --shade: #f3f5f7; }
@media (prefers-color-scheme: dark) { :root { --text: #e3e7ec; --back: #14171b; --line: #3d444d;
  --dim: #9aa4af; --right: #6fd283; --weak: #e6b15c; --wrong: #ff8f8a; --shade: #1e2329; } }
body { color: var(--text); background: var(--back); font: 16px/1.45 system-ui, sans-serif;
  max-width: 76rem; margin: 1.5rem auto; padding: 0 1rem; overflow-wrap: anywhere; }
h1 { font-size: 1.15rem; font-weight: 600; color: var(--dim); }
h2 { font-size: 1.05rem; margin: 2rem 0 .5rem; border-bottom: 1px solid var(--line); }
.sentence { font-size: 1.35rem; line-height: 1.3; margin: .3rem 0 1rem; padding-left: .8rem;
  border-left: .35rem solid; }
pre, code, .grid, .list { font-family: ui-monospace, monospace; font-size: .86rem; }
pre { background: var(--shade); padding: .6rem; white-space: pre-wrap; }
table { border-collapse: collapse; }
.wide { overflow-x: auto; }
.later { content-visibility: auto; }
.later table { table-layout: fixed; width: 100%; min-width: 56rem; }
.later th { width: 6rem; } .later th:first-child { width: 20rem; }
.later th:last-child { width: auto; }
th { font-weight: 600; text-align: left; color: var(--dim); }
th, td { padding: .1rem .5rem; border-bottom: 1px solid var(--line); vertical-align: top; }
.grid td { text-align: center; min-width: 1.2rem; }
.grid th.up { writing-mode: vertical-rl; transform: rotate(180deg); vertical-align: bottom; }
.list td.n { text-align: right; white-space: nowrap; }
.list td:first-child { white-space: nowrap; }
.right { color: var(--right); } .weak { color: var(--weak); font-weight: 600; }
.wrong { color: var(--wrong); font-weight: 700; } .none { color: var(--dim); }
.sentence.right, .sentence.weak, .sentence.wrong, .sentence.none { font-weight: 600; }
.panels { display: flex; flex-wrap: wrap; gap: 1rem 2rem; }
svg text { fill: var(--dim); font: 11px ui-monospace, monospace; }
svg .axis { stroke: var(--line); } svg .mark { fill: none; stroke: currentColor; }
@media print { body { max-width: none; margin: 0; } .wide { overflow: visible; }
  details { display: block; } tr { break-inside: avoid; } }
)css";

/// Replaces bytes that are not UTF-8 by a mark.
std::string as_utf8(std::string_view text) {
  const std::string quoted =
      nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  return nlohmann::json::parse(quoted).get<std::string>();
}

/// Replaces U+FFFE and U+FFFF, which UTF-8 can write and XML cannot hold.
std::string without_noncharacters(std::string text) {
  for (const std::string_view not_one : {"\xEF\xBF\xBE", "\xEF\xBF\xBF"})
    for (std::size_t at = 0; (at = text.find(not_one, at)) != std::string::npos;)
      text.replace(at, not_one.size(), "?");
  return text;
}

}  // namespace

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : without_noncharacters(as_utf8(text))) switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t' ? '?' : c;
    }
  return out;
}

std::string html_page(std::string_view title, std::string_view body) {
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n"
      "<meta name=\"viewport\" content=\"width=device-width\"/>\n<title>{}</title>\n"
      "<style>{}</style>\n</head>\n<body>\n{}</body>\n</html>\n",
      escaped(title), kStyle, body);
}

}  // namespace shardproof::tools
