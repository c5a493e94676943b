#pragma once

#include <string>
#include <string_view>
#include <utility>

namespace shardproof {

/// Text as an SVG text node or attribute holds it: & < > " ' escaped, whatever is not printable
/// ASCII replaced by '?'.
std::string escape_xml(std::string_view text);

/// Writes the few elements of SVG 1.1 that pictures here need; lengths in points, y downwards. All
/// text is monospaced, so that its width is known without any font: kAdvance of its size a letter.
class Svg {
 public:
  static constexpr double kAdvance = 0.605;
  static double width(std::string_view text, double size) {
    return kAdvance * size * static_cast<double>(text.size());
  }

  struct Text {
    double size = 6;
    const char* anchor = "start";  ///< start, middle or end; "" is that of the group around

    const char* fill = "#000";
    bool bold = false;
  };

  /// The baseline is y. Empty text writes nothing.
  void text(double x, double y, std::string_view text, const Text& how);
  void text(double x, double y, std::string_view content) { text(x, y, content, Text{}); }
  /// A rectangle; `style` is further attributes, written as they are. A `title` is what a viewer
  /// shows when pointed at.
  void rect(double x, double y, double w, double h, std::string_view style,
            std::string_view title = {});
  /// Path data of a rectangle, and of a line, for path().
  static std::string box(double x, double y, double w, double h);
  static std::string stroke(double x1, double y1, double x2, double y2);
  /// Writes nothing if there is no data.
  void path(std::string_view data, std::string_view style);
  void line(double x1, double y1, double x2, double y2, std::string_view style);

  /// Text anchored at its middle unless told otherwise, until close().
  void open_middle() { body_ += "<g text-anchor=\"middle\">\n"; }
  /// A group; `id` and `kind` (its class) may be empty. Closed by close().
  void open(std::string_view id, std::string_view kind, std::string_view title = {});
  void close();

  /// Elements written so far, and everything forgotten.
  std::string take() { return std::exchange(body_, {}); }
  void append(std::string_view elements) { body_ += elements; }
  /// What was written, moved by (dx, dy).
  void append_at(double dx, double dy, std::string_view elements);

  /// The whole file: an image of w by h points on white.
  std::string document(double w, double h, std::string_view title) const;

 private:
  std::string body_;
};

}  // namespace shardproof
