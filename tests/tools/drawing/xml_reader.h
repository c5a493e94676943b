#pragma once

#include <cctype>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace shardproof {

/// An element of an XML document, read strictly; content is the text directly in it.
struct XmlElement {
  std::string name, content;
  std::map<std::string, std::string> attributes;
  std::vector<XmlElement> children;

  std::string attribute(const std::string& key, const std::string& otherwise = "") const {
    const auto at = attributes.find(key);
    return at == attributes.end() ? otherwise : at->second;
  }
};

/// Reads a document of elements, attributes, text and the five named entities; throws
/// std::runtime_error on whatever is not well-formed, and on anything else that XML has.
class XmlReader {
 public:
  static XmlElement read(std::string_view text) {
    XmlReader reader(text);
    constexpr std::string_view kHead = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n";
    if (!text.starts_with(kHead)) reader.fail("no declaration");
    reader.at_ = kHead.size();
    reader.expect('<');
    XmlElement root = reader.element();
    reader.blanks();
    if (reader.at_ != text.size()) reader.fail("text behind the root element");
    return root;
  }

 private:
  explicit XmlReader(std::string_view text) : text_(text) {}

  [[noreturn]] void fail(const std::string& what) const {
    throw std::runtime_error(what + " at " + std::to_string(at_) + ": " +
                             std::string(text_.substr(at_, 40)));
  }
  char peek() const {
    if (at_ >= text_.size()) fail("unexpected end");
    return text_[at_];
  }
  void expect(char c) {
    if (peek() != c) fail(std::string("expected ") + c);
    ++at_;
  }
  void blanks() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
  }
  std::string name() {
    const std::size_t begin = at_;
    while (std::isalnum(static_cast<unsigned char>(peek())) || peek() == '-') ++at_;
    if (begin == at_) fail("no name");
    return std::string(text_.substr(begin, at_ - begin));
  }
  std::string until(char end) {
    std::string value;
    while (peek() != end) {
      if (peek() == '<') fail("bare <");
      if (peek() != '&') {
        value += text_[at_++];
        continue;
      }
      static const std::map<std::string_view, char> kEntities{
          {"&amp;", '&'}, {"&lt;", '<'}, {"&gt;", '>'}, {"&quot;", '"'}, {"&apos;", '\''}};
      const std::string_view entity = text_.substr(at_, text_.find(';', at_) + 1 - at_);
      if (!kEntities.contains(entity)) fail("bare &");
      value += kEntities.at(entity);
      at_ += entity.size();
    }
    return value;
  }
  /// Behind '<'.
  XmlElement element() {
    XmlElement e;
    e.name = name();
    for (blanks(); peek() != '>' && peek() != '/'; blanks()) {
      const std::string key = name();
      expect('=');
      expect('"');
      if (!e.attributes.emplace(key, until('"')).second) fail("attribute twice");
      expect('"');
    }
    if (peek() == '/') {
      ++at_;
      expect('>');
      return e;
    }
    expect('>');
    for (;;) {
      e.content += until('<');
      expect('<');
      if (peek() != '/') {
        e.children.push_back(element());
        continue;
      }
      ++at_;
      if (name() != e.name) fail("wrong end of " + e.name);
      expect('>');
      return e;
    }
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace shardproof
