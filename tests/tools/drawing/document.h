#pragma once

// Reading a picture: a document of elements, and where its texts stand.
#include <algorithm>
#include <cstdio>
#include <pugixml.hpp>
#include <regex>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace shardproof {

using Xml = pugi::xml_node;

inline std::string attribute(const Xml& e, const char* key, const char* otherwise = "") {
  return e.attribute(key).as_string(otherwise);
}

template <class F>
void visit(const Xml& e, const F& f) {
  f(e);
  for (const Xml& child : e.children())
    if (child.type() == pugi::node_element) visit(child, f);
}

/// A document of elements, attributes and text; throws std::runtime_error on whatever is not well
/// formed, of which pugixml lets some pass.
class Document {
 public:
  explicit Document(const std::string& text) {
    const pugi::xml_parse_result parsed = tree_.load_buffer(
        text.data(), text.size(), pugi::parse_full | pugi::parse_ws_pcdata_single);
    if (!parsed) fail(parsed.description());
    static const std::regex kNoEntity("&(?!(amp|lt|gt|quot|apos);)");
    if (std::regex_search(text, kNoEntity)) fail("a bare &");
    static const std::regex kBareInAttribute("=\"[^\"<]*<");
    if (std::regex_search(text, kBareInAttribute)) fail("a bare <");
    const std::string name = root().name();
    if (!text.starts_with("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<" + name))
      fail("no declaration right before the root element");
    if (!text.ends_with("</" + name + ">\n")) fail("text after the root element");
    for (const Xml& child : tree_.children())
      if (child.type() != pugi::node_declaration && child != tree_.document_element())
        fail("more than a root element");
    visit(root(), [](const Xml& e) {
      std::set<std::string> names;
      for (const pugi::xml_attribute& a : e.attributes())
        if (!names.insert(a.name()).second) fail("an attribute twice");
      for (const Xml& child : e.children())
        if (child.type() != pugi::node_element && child.type() != pugi::node_pcdata)
          fail("neither element nor text");
    });
  }

  Xml root() const { return tree_.document_element(); }

 private:
  [[noreturn]] static void fail(const std::string& what) { throw std::runtime_error(what); }

  pugi::xml_document tree_;
};

/// The text directly in an element.
inline std::string content(const Xml& e) { return e.text().get(); }

/// The text in an element, a blank between lines.
inline std::string words(const Xml& e) {
  std::string all;
  visit(e, [&](const Xml& each) {
    if (std::string_view(each.name()) == "text") all += (all.empty() ? "" : " ") + content(each);
  });
  return all;
}

inline std::vector<Xml> of_class(const Xml& root, const std::string& kind) {
  std::vector<Xml> found;
  visit(root, [&](const Xml& e) {
    if (attribute(e, "class") == kind) found.push_back(e);
  });
  return found;
}

inline Xml by_id(const Xml& root, const std::string& id) {
  Xml found;
  visit(root, [&](const Xml& e) {
    if (attribute(e, "id") == id) found = e;
  });
  return found;
}

struct Box {
  double left, top, right, bottom;
  std::string text;
};

/// Where every text stands; monospaced letters are 0.602 of their size wide, or less.
inline void text_boxes(const Xml& e, double x, double y, std::string anchor,
                       std::vector<Box>& boxes) {
  if (const std::string move = attribute(e, "transform"); !move.empty()) {
    double dx = 0, dy = 0;
    if (std::sscanf(move.c_str(), "translate(%lf %lf)", &dx, &dy) != 2)
      throw std::runtime_error(move);
    x += dx, y += dy;
  }
  anchor = attribute(e, "text-anchor", anchor.c_str());
  if (std::string_view(e.name()) == "text") {
    const double size = std::stod(attribute(e, "font-size", "6"));
    const double w = 0.602 * size * static_cast<double>(content(e).size());
    const double left = x + std::stod(attribute(e, "x")) -
                        (anchor == "middle" ? w / 2
                         : anchor == "end"  ? w
                                            : 0);
    const double base = y + std::stod(attribute(e, "y"));
    boxes.push_back({.left = left,
                     .top = base - 0.74 * size,
                     .right = left + w,
                     .bottom = base + 0.2 * size,
                     .text = content(e)});
    if (size < 6) throw std::runtime_error("smaller than 6 points: " + content(e));
  }
  for (const Xml& child : e.children())
    if (std::string_view(child.name()) != "defs") text_boxes(child, x, y, anchor, boxes);
}

/// "", or the text that is clipped or that covers another.
inline std::string misplaced(const Xml& root) {
  std::vector<Box> boxes;
  text_boxes(root, 0, 0, "start", boxes);
  std::sort(boxes.begin(), boxes.end(), [](const Box& a, const Box& b) { return a.top < b.top; });
  double w = 0, h = 0;
  if (std::sscanf(attribute(root, "viewBox").c_str(), "0 0 %lf %lf", &w, &h) != 2) return "viewBox";
  for (std::size_t i = 0; i < boxes.size(); ++i) {
    const Box& a = boxes[i];
    if (a.left < 10 || a.top < 10 || a.right > w - 10 || a.bottom > h - 10)
      return "outside: " + a.text;
    for (std::size_t j = i + 1; j < boxes.size() && boxes[j].top < a.bottom; ++j)
      if (a.left < boxes[j].right && boxes[j].left < a.right) return a.text + " / " + boxes[j].text;
  }
  return "";
}

}  // namespace shardproof
