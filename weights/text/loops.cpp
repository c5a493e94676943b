#include "weights/text/loops.h"

#include <algorithm>
#include <map>
#include <string>

#include "weights/text/rules.h"

namespace shardproof {
namespace {

using Edges = std::vector<std::vector<std::size_t>>;

/// Returns for each line the lines of the section that it reads, now or one position earlier.
Edges needs_of(const ModelText& text, const std::vector<TextLine>& lines) {
  std::map<std::string, std::vector<std::size_t>, std::less<>> defined;
  for (std::size_t i = 0; i < lines.size(); ++i) defined[lines[i].name].push_back(i);
  Edges needs(lines.size());
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const Reads reads = reads_of(text, lines[i]);
    for (const auto* names : {&reads.now, &reads.before})
      for (const std::string& name : *names)
        if (const auto at = defined.find(name); at != defined.end())
          needs[i].insert(needs[i].end(), at->second.begin(), at->second.end());
  }
  return needs;
}

/// Strongly connected components by Tarjan's algorithm, each after those that it needs. Without
/// recursion: a text may have ten thousand lines that need one another.
class Components {
 public:
  explicit Components(const Edges& needs)
      : needs_(needs), index_(needs.size(), 0), low_(needs.size(), 0), on_(needs.size(), false) {
    for (std::size_t i = 0; i < needs.size(); ++i)
      if (index_[i] == 0) visit(i);
  }

  std::vector<std::vector<std::size_t>> all;

 private:
  struct Frame {
    std::size_t line, next;
  };

  void visit(std::size_t root) {
    std::vector<Frame> frames{{root, 0}};
    enter(root);
    while (!frames.empty()) {
      Frame& frame = frames.back();
      const std::size_t line = frame.line;
      if (frame.next < needs_[line].size()) {
        const std::size_t other = needs_[line][frame.next++];
        if (index_[other] == 0) {
          enter(other);
          frames.push_back({other, 0});
        } else if (on_[other]) {
          low_[line] = std::min(low_[line], index_[other]);
        }
        continue;
      }
      frames.pop_back();
      if (!frames.empty()) {
        const std::size_t above = frames.back().line;
        low_[above] = std::min(low_[above], low_[line]);
      }
      if (low_[line] == index_[line]) leave(line);
    }
  }

  void enter(std::size_t line) {
    index_[line] = low_[line] = ++count_;
    stack_.push_back(line);
    on_[line] = true;
  }

  void leave(std::size_t line) {
    std::vector<std::size_t> component;
    for (;;) {
      const std::size_t top = stack_.back();
      stack_.pop_back();
      on_[top] = false;
      component.push_back(top);
      if (top == line) break;
    }
    std::sort(component.begin(), component.end());
    all.push_back(std::move(component));
  }

  const Edges& needs_;
  std::vector<std::size_t> index_, low_;
  std::vector<bool> on_;
  std::vector<std::size_t> stack_;
  std::size_t count_ = 0;
};

}  // namespace

std::vector<LineGroup> order_of_lines(const ModelText& text, TextSection section) {
  const auto& lines = text.section(section).lines;
  const Edges needs = needs_of(text, lines);
  std::vector<LineGroup> groups;
  for (const auto& component : Components(needs).all) {
    const std::size_t first = component[0];
    const bool itself =
        std::find(needs[first].begin(), needs[first].end(), first) != needs[first].end();
    groups.push_back({component, component.size() > 1 || itself});
  }
  return groups;
}

}  // namespace shardproof
