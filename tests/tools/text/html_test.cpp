#include "tools/text/html.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <string>

#include "tests/tools/xml.h"

namespace shardproof::tools {
namespace {

TEST(Escaped, KeepsTextOutOfMarkup) {
  EXPECT_EQ(escaped("a < b && \"c\" > 'd'"), "a &lt; b &amp;&amp; &quot;c&quot; &gt; &#39;d&#39;");
  EXPECT_EQ(escaped("Grün ✗\n\tx"), "Grün ✗\n\tx");
  EXPECT_EQ(escaped(std::string("a\0\x01\x1f", 4)), "a???");
  EXPECT_EQ(escaped("\xff"), "\xEF\xBF\xBD");
  EXPECT_EQ(escaped("\xEF\xBF\xBE \xEF\xBF\xBF"), "? ?");
}

/// Whatever bytes a name has, a page with it is well-formed, and shows what is valid of it.
RC_GTEST_PROP(HtmlPage, IsWellFormedWhateverItShows, (const std::string& name)) {
  const Xml page(
      html_page(name, "<p id=\"it\" title=\"" + escaped(name) + "\">" + escaped(name) + "</p>\n"));
  RC_ASSERT(page.count("//p[@id='it']") == 1U);
  RC_ASSERT(page.count("//*") == 8U);  // html, head, two meta, title, style, body, p
}

TEST(HtmlPage, LoadsNothingElse) {
  const std::string page = html_page("title", "<p>body</p>\n");
  for (const char* word : {"http", "src=", "href=", "url(", "@import", "<script"})
    EXPECT_EQ(page.find(word), std::string::npos) << word;
  for (const char* word : {"prefers-color-scheme: dark", "@media print", "charset=\"utf-8\""})
    EXPECT_NE(page.find(word), std::string::npos) << word;
}

}  // namespace
}  // namespace shardproof::tools
