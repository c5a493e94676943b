#pragma once

// Pages and JUnit files as trees.
#include <gtest/gtest.h>

#include <pugixml.hpp>
#include <string>

namespace shardproof::tools {

/// A text that is XML.
struct Xml {
  pugi::xml_document document;

  explicit Xml(const std::string& text) {
    const auto parsed =
        document.load_buffer(text.data(), text.size(), pugi::parse_full | pugi::parse_ws_pcdata);
    EXPECT_TRUE(parsed) << parsed.description() << " at "
                        << text.substr(static_cast<std::size_t>(parsed.offset), 80);
  }
  /// All text in what an XPath selects first; "" if it selects nothing.
  std::string text(const char* path) const {
    std::string all;
    for (const auto& node : document.select_nodes((std::string(path) + "//text()").c_str()))
      all += node.node().value();
    return all;
  }
  std::size_t count(const char* path) const { return document.select_nodes(path).size(); }
};

}  // namespace shardproof::tools
