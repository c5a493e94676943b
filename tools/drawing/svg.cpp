#include "tools/drawing/svg.h"

#include <fmt/format.h>

#include <cmath>

namespace shardproof {
namespace {

/// Formats with two decimals: a hundredth of a point is finer than any printer.
std::string number(double value) {
  std::string text = fmt::format("{:.2f}", std::round(value * 100) / 100 + 0.0);
  while (text.back() == '0') text.pop_back();
  if (text.back() == '.') text.pop_back();
  return text;
}

}  // namespace

std::string escape_xml(std::string_view text) {
  std::string out;
  for (char c : text) switch (c) {
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
        out += "&apos;";
        break;
      default:
        out += c >= ' ' && c <= '~' ? c : '?';
    }
  return out;
}

void Svg::text(double x, double y, std::string_view text, const Text& how) {
  if (text.empty()) return;
  body_ += fmt::format("<text x=\"{}\" y=\"{}\"", number(x), number(y));
  if (how.size != 6) body_ += fmt::format(" font-size=\"{}\"", number(how.size));
  if (const std::string_view anchor = how.anchor; anchor != "start" && !anchor.empty())
    body_ += fmt::format(" text-anchor=\"{}\"", how.anchor);
  if (std::string_view(how.fill) != "#000") body_ += fmt::format(" fill=\"{}\"", how.fill);
  if (how.bold) body_ += " font-weight=\"bold\"";
  body_ += fmt::format(">{}</text>\n", escape_xml(text));
}

void Svg::rect(double x, double y, double w, double h, std::string_view style,
               std::string_view title) {
  body_ += fmt::format("<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" {}", number(x),
                       number(y), number(w), number(h), style);
  body_ += title.empty() ? "/>\n" : fmt::format("><title>{}</title></rect>\n", escape_xml(title));
}

std::string Svg::box(double x, double y, double w, double h) {
  return fmt::format("M{} {}h{}v{}h{}z", number(x), number(y), number(w), number(h), number(-w));
}

std::string Svg::stroke(double x1, double y1, double x2, double y2) {
  return fmt::format("M{} {}L{} {}", number(x1), number(y1), number(x2), number(y2));
}

void Svg::path(std::string_view data, std::string_view style) {
  if (!data.empty()) body_ += fmt::format("<path d=\"{}\" {}/>\n", data, style);
}

void Svg::line(double x1, double y1, double x2, double y2, std::string_view style) {
  body_ += fmt::format("<line x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\" {}/>\n", number(x1),
                       number(y1), number(x2), number(y2), style);
}

void Svg::open(std::string_view id, std::string_view kind, std::string_view title) {
  body_ += "<g";
  if (!id.empty()) body_ += fmt::format(" id=\"{}\"", escape_xml(id));
  if (!kind.empty()) body_ += fmt::format(" class=\"{}\"", escape_xml(kind));
  body_ += ">";
  if (!title.empty()) body_ += fmt::format("<title>{}</title>", escape_xml(title));
  body_ += "\n";
}

void Svg::close() { body_ += "</g>\n"; }

void Svg::append_at(double dx, double dy, std::string_view elements) {
  body_ +=
      fmt::format("<g transform=\"translate({} {})\">\n{}</g>\n", number(dx), number(dy), elements);
}

std::string Svg::document(double w, double h, std::string_view title) const {
  return fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
      "<svg xmlns=\"http://www.w3.org/2000/svg\" version=\"1.1\" width=\"{0}pt\" height=\"{1}pt\" "
      "viewBox=\"0 0 {0} {1}\" font-size=\"6\" font-family=\"'DejaVu Sans Mono','Liberation "
      "Mono',Menlo,Consolas,'Courier New',monospace\">\n"
      "<title>{2}</title>\n"
      "<defs><pattern id=\"partial\" width=\"3\" height=\"3\" patternUnits=\"userSpaceOnUse\" "
      "patternTransform=\"rotate(45)\"><path d=\"M0 0V3\" stroke=\"#000\" stroke-width=\"0.7\" "
      "stroke-opacity=\"0.35\"/></pattern></defs>\n"
      "<rect width=\"{0}\" height=\"{1}\" fill=\"#fff\"/>\n{3}</svg>\n",
      number(w), number(h), escape_xml(title), body_);
}

}  // namespace shardproof
