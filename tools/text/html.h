#pragma once

#include <string>
#include <string_view>

namespace shardproof::tools {

/// Escapes a text for elements and quoted attributes of HTML.
std::string escaped(std::string_view text);

/// Returns a whole HTML page, well-formed as XML, that loads nothing else: readable in light and
/// dark and on paper. The body is HTML; its classes are those of the page's style: "sentence" for
/// the paragraph that says the result, "grid" for tables of marks, and a class for each verdict
/// ("right", "weak", "wrong", "none"), which a mark also says in a character.
std::string html_page(std::string_view title, std::string_view body);

}  // namespace shardproof::tools
