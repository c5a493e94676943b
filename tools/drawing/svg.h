#pragma once

#include <string>
#include <string_view>
#include <utility>

namespace shardproof {

/// Escapes text for an SVG text node or attribute: & < > " ' escaped, anything but printable ASCII
/// replaced by '?'.
std::string escape_xml(std::string_view text);

/// Writes the few SVG 1.1 elements that pictures need; lengths in points, y downwards. All text is
/// monospaced, so that its width is known without a font: kAdvance times its size per letter.
class Svg {
 public:
  static constexpr double kAdvance = 0.605;
  static double width(std::string_view text, double size) {
    return kAdvance * size * static_cast<double>(text.size());
  }

  struct Text {
    double size = 6;
    const char* anchor = "start";  ///< start, middle or end; "" inherits the group's
    const char* fill = "#000";
    bool bold = false;
  };

  /// Writes text with baseline y; nothing if it is empty.
  void text(double x, double y, std::string_view text, const Text& how);
  void text(double x, double y, std::string_view content) { text(x, y, content, Text{}); }
  /// Writes a rectangle; `style` is further attributes, written verbatim. `title` is a tooltip.
  void rect(double x, double y, double w, double h, std::string_view style,
            std::string_view title = {});
  /// Return path data of a rectangle and of a line, for path().
  static std::string box(double x, double y, double w, double h);
  static std::string stroke(double x1, double y1, double x2, double y2);
  /// Writes a path; nothing if the data is empty.
  void path(std::string_view data, std::string_view style);
  void line(double x1, double y1, double x2, double y2, std::string_view style);

  /// Opens a group in which text is centred by default, until close().
  void open_middle() { body_ += "<g text-anchor=\"middle\">\n"; }
  /// Opens a group, until close(); `id` and `kind` (its class) may be empty.
  void open(std::string_view id, std::string_view kind, std::string_view title = {});
  void close();

  /// Returns the elements written so far and clears them.
  std::string take() { return std::exchange(body_, {}); }
  void append(std::string_view elements) { body_ += elements; }
  /// Appends elements moved by (dx, dy).
  void append_at(double dx, double dy, std::string_view elements);

  /// Returns the whole file: an image of w by h points on white.
  std::string document(double w, double h, std::string_view title) const;

 private:
  std::string body_;
};

}  // namespace shardproof
