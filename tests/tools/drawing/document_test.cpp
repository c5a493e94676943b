#include "tests/tools/drawing/document.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

namespace shardproof {
namespace {

TEST(Document, IsWellFormedAndNothingBesides) {
  const std::string head = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n";
  const Document good(head + "<svg a=\"1 &lt; 2\"><text>&amp;</text><g/></svg>\n");
  EXPECT_EQ(attribute(good.root(), "a"), "1 < 2");
  EXPECT_EQ(words(good.root()), "&");
  for (const char* bad :
       {"<svg></svg>junk\n", "junk<svg></svg>\n", "<svg></svg><svg></svg>\n", "<svg><g></svg>\n",
        "<svg>&</svg>\n", "<svg>&nbsp;</svg>\n", "<svg a=\"&\"></svg>\n", "<svg a=\"<\"></svg>\n",
        "<svg a=\"1\" a=\"2\"></svg>\n", "<svg a=1></svg>\n", "<svg a></svg>\n",
        "<svg>1 < 2</svg>\n", "<svg><!-- --></svg>\n", "<svg><![CDATA[x]]></svg>\n",
        "<svg><?x y?></svg>\n", "<!-- --><svg></svg>\n", "<!DOCTYPE svg><svg></svg>\n",
        "<svg></svg", ""})
    EXPECT_THROW(Document(head + bad), std::runtime_error) << bad;
  EXPECT_THROW(Document("<svg></svg>\n"), std::runtime_error) << "no declaration";
}

}  // namespace
}  // namespace shardproof
