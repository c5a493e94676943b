// What the public headers say of errors, held against the sources as text.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>

namespace shardproof {
namespace {

namespace fs = std::filesystem;

const fs::path kRoot = SHARDPROOF_SOURCE;

std::string read(const fs::path& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

/// The public headers, as cmake/ShardproofHeaders.cmake lists them, relative to the root.
std::set<std::string> public_headers() {
  std::set<std::string> all;
  std::istringstream list(SHARDPROOF_PUBLIC_HEADERS);
  for (std::string header; std::getline(list, header, ',');) all.insert(header);
  return all;
}

/// Every file of the libraries, relative to the root.
std::set<std::string> library_files() {
  std::set<std::string> all;
  for (const char* folder : {"weights", "oracle", "engine", "golden", "tools/drawing"})
    for (const auto& entry : fs::recursive_directory_iterator(kRoot / folder)) {
      const std::string end = entry.path().extension();
      if (end == ".h" || end == ".cpp" || end == ".inl")
        all.insert(fs::relative(entry.path(), kRoot).generic_string());
    }
  return all;
}

std::set<std::string> matches(const std::string& text, const std::regex& pattern) {
  std::set<std::string> all;
  for (std::sregex_iterator at(text.begin(), text.end(), pattern), end; at != end; ++at)
    all.insert((*at)[1]);
  return all;
}

std::string comments_of(const std::string& text) {
  std::string comments;
  for (const std::string& line : matches(text, std::regex("//(.*)"))) comments += line + "\n";
  return comments;
}

std::string code_of(const std::string& text) {
  return std::regex_replace(text, std::regex("//.*"), "");
}

/// The labels that a source throws: in `Error("label"`, or handed to a function that throws. The
/// second are told by how labels begin; those of the typing rules are made from an op's name, and
/// tools/verbs/rules/ has them.
std::set<std::string> labels_of(const std::string& code) {
  static const std::regex thrown(R"re(\bError\(\s*"([a-z]+_[a-z0-9]+)")re");
  static const std::regex passed(
      R"re("((?:axes|case|chip|efficiency|file|ieee|judge|layer|layout|layouts|memory|model|oracle|picture|program|scalar|)re"
      R"re(strategy|torus|trace|path|weights)_[a-z0-9]+)")re");
  std::set<std::string> labels = matches(code, thrown);
  labels.merge(matches(code, passed));
  return labels;
}

/// By label, the public headers whose comments quote it.
std::map<std::string, std::set<std::string>> documented() {
  std::map<std::string, std::set<std::string>> all;
  for (const std::string& header : public_headers()) {
    std::string comments = comments_of(read(kRoot / header));
    for (const std::string& label : matches(comments, std::regex("\"([a-z]+_[a-z0-9]+)\"")))
      all[label].insert(header);
  }
  return all;
}

TEST(PublicHeaders, AreThere) {
  EXPECT_GE(public_headers().size(), 40U);
  for (const std::string& header : public_headers())
    EXPECT_TRUE(fs::is_regular_file(kRoot / header)) << header;
}

TEST(PublicHeaders, ThatMentionErrorIncludeIt) {
  static const std::regex mention(R"re(\bError\b)re");
  for (const std::string& header : public_headers()) {
    const std::string text = read(kRoot / header);
    if (header == "weights/base/error.h" || !std::regex_search(text, mention)) continue;
    EXPECT_NE(text.find("#include \"weights/base/error.h\""), std::string::npos) << header;
  }
}

TEST(PublicHeaders, NameEveryLabelThatIsThrown) {
  const auto named = documented();
  std::size_t labels = 0;
  for (const std::string& file : library_files())
    for (const std::string& label : labels_of(code_of(read(kRoot / file)))) {
      EXPECT_TRUE(named.contains(label)) << file << " throws \"" << label << "\"";
      ++labels;
    }
  EXPECT_GE(labels, 80U) << "labels were looked for in the wrong way";
}

TEST(PublicHeaders, NameNoLabelThatNobodyThrows) {
  std::set<std::string> thrown;
  for (const std::string& file : library_files())
    thrown.merge(labels_of(code_of(read(kRoot / file))));
  // Only what follows "Throws", up to the end of the comment: other names are quoted, too.
  static const std::regex throws(R"re(Throws?\b((?:[^\n]|\n\s*///)*))re");
  static const std::regex quoted("\"([a-z]+_[a-z0-9]+)\"");
  static const std::regex rule("[a-z_]+_c[0-9]");  // of typing: e.g. "all_gather_c3"
  for (const std::string& header : public_headers())
    for (const std::string& said : matches(read(kRoot / header), throws))
      for (const std::string& label : matches(said, quoted))
        EXPECT_TRUE(thrown.contains(label) || std::regex_match(label, rule))
            << header << " names \"" << label << "\"";
}

/// The types that a header defines at the level of its namespace, as NAMESPACE::TYPE.
std::set<std::string> types_of(const std::string& header) {
  static const std::regex line(
      "(?:^|\n)(?:namespace (shardproof[a-z_:]*) \\{|"
      "(?:struct|class|enum class) ([A-Za-z]\\w*)(?!\\w|::)[^;\n]*\\{)");
  std::set<std::string> all;
  std::string space;
  for (std::sregex_iterator at(header.begin(), header.end(), line), end; at != end; ++at)
    if ((*at)[1].matched)
      space = (*at)[1];
    else
      all.insert(space + "::" + std::string((*at)[2]));
  return all;
}

/// Two types of one name are one to the linker, which keeps the functions of either.
std::set<std::string> twice(const std::map<std::string, std::set<std::string>>& types) {
  std::set<std::string> seen, again;
  for (const auto& [path, names] : types)
    for (const std::string& name : names)
      if (!seen.insert(name).second) again.insert(name);
  return again;
}

TEST(Types, HaveANameOfTheirOwnInTheirNamespace) {
  std::map<std::string, std::set<std::string>> types;
  for (const std::string& file : library_files())
    if (file.ends_with(".h")) types[file] = types_of(read(kRoot / file));
  EXPECT_EQ(twice(types), std::set<std::string>());
  std::size_t all = 0;
  for (const auto& [path, names] : std::map(types))
    for (const std::string& name : names) {
      const auto at = name.rfind("::");
      types["planted.h"] = types_of("namespace " + name.substr(0, at) + " {\nstruct " +
                                    name.substr(at + 2) + " {\n};\n}\n");
      EXPECT_EQ(twice(types), std::set{name}) << path;
      ++all;
    }
  EXPECT_GE(all, 200U);
}

}  // namespace
}  // namespace shardproof
