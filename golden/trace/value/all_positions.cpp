#include "golden/trace/value/all_positions.h"

#include <algorithm>
#include <map>

#include "golden/trace/value/last_rows.h"

namespace shardproof::dump {
PassPlan pass_named(const std::string& name, const Passes& passes) {
  PassPlan pass;
  for (std::int64_t i = 0; i < passes.size() && pass.name != name; ++i) pass = passes.at(i);
  return pass;
}

bool has_all_positions(const Subject& subject, const dump::Value& value, const Mesh& mesh) {
  if (subject.name != "logits" || subject.dims != "BV") return false;
  if (const auto layout = value.attributes.find("layout"); layout != value.attributes.end())
    return layout->second.find('L') != std::string::npos;
  const std::size_t dims =
      value.in_shards() ? value.chips.begin()->second.shape.size() : value.whole.shape.size();
  const bool stacked = value.attributes.contains("spec") && !value.in_shards();
  return dims == 3 || (stacked && dims == 3 + mesh.order().size());
}

Subject at_all_positions(const Subject& subject, const Passes& passes) {
  Subject all = subject;
  all.dims = "BLV";
  all.shape.insert(all.shape.begin() + 1, pass_named(subject.pass, passes).L);
  return all;
}

void take_last_positions(DumpedValue& dumped, const Passes& passes) {
  const PassPlan pass = pass_named(dumped.subject.pass, passes);
  std::vector<std::int64_t> places(static_cast<std::size_t>(element_count(dumped.subject.shape)),
                                   DumpedValue::kNone);
  std::int64_t place = 0;
  for (const std::size_t element : last_elements(dumped.subject.shape, pass))
    places[element] = place++;
  for (Places& chip : dumped.places)
    for (std::int64_t& at : chip.own())
      if (at != DumpedValue::kNone) at = places[static_cast<std::size_t>(at)];
  dumped.subject.dims = "BV";
  dumped.subject.shape.erase(dumped.subject.shape.begin() + 1);
  std::vector<Layout::Dim> dims = dumped.layout.dims();
  std::erase_if(dims, [](const Layout::Dim& dim) { return dim.letter == 'L'; });
  dumped.layout = Layout(std::move(dims), dumped.layout.partial());
  dumped.note = "of all positions; each row's last one is judged";
}

}  // namespace shardproof::dump
