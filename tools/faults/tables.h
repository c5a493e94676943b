#pragma once

#include <string>
#include <vector>

#include "golden/faults/matrix.h"
#include "golden/faults/smallest.h"
#include "weights/base/error.h"

namespace shardproof::tools {

/// A table of what was seen, for every way of printing.
struct FaultTable {
  std::string title;
  std::vector<std::string> head;
  std::vector<std::vector<std::string>> rows;
};

/// Returns the tables of a matrix: by class and by strategy what the detectors saw, in percent; by
/// class what the checks of others saw, end to end and per value, with their alarms on right bf16
/// runs; the equivalent mutants by reason; and for each detector classes by strategy.
std::vector<FaultTable> tables_of(const faults::Matrix& matrix);
/// Returns the table of all operators: class, name, what it does, mutants, what was seen.
FaultTable operator_table(const faults::Matrix& matrix);
/// Returns what the classes M1 to M15 are.
FaultTable classes_table();
/// Returns, for each size of a fault, at how many of the sites in percent it was seen.
FaultTable size_table(const faults::SizeCurve& curve);
/// Returns the numbers of mutants, killed, equivalent and surviving, in one sentence.
std::string sentence_of(const faults::Matrix& matrix);

/// Return a table as text of at most 80 columns, as Markdown and as HTML.
std::string as_text(const FaultTable& table);
std::string as_markdown(const FaultTable& table);
std::string as_html(const FaultTable& table);

/// Returns one page with all tables, and the survivors' reproducing lines.
std::string faults_page(const faults::Matrix& matrix, const std::vector<std::string>& survivors);
/// Returns all tables of a matrix as Markdown.
std::string matrix_markdown(const faults::Matrix& matrix);
/// Returns at how many steps of which strategies sizes were tried.
std::string sites_sentence(const std::vector<faults::FaultCase>& cases,
                           const std::vector<faults::SizeCurve>& curves);
/// Returns the tables of sizes as Markdown, behind the sentence of where.
std::string sizes_markdown(const std::string& where, const std::vector<faults::SizeCurve>& curves);
/// Returns a document with the text between its marks "<!-- NAME -->" and "<!-- end of NAME -->"
/// replaced. Throws Error("faults_docs", ...) if it lacks a mark.
std::string with_part(const std::string& document, const std::string& name,
                      const std::string& text);

}  // namespace shardproof::tools
