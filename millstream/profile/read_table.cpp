// SPDX-License-Identifier: Apache-2.0
// Tables of tasks as CSV. Cells may be quoted, may end in a tab (a guard against spreadsheets), and say N/A where nothing is
// known; rows may be shorter than the header. Columns go by the names they had over the years.
#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

#include <fmt/format.h>

#include "millstream/profile/place.h"
#include "millstream/profile/records.h"

namespace millstream {
namespace {

struct Cell {
  std::string text;
  std::size_t offset = 0;  // of its first byte
};

class Rows {
 public:
  Rows(std::string_view text, const std::string& file) : text_(text), file_(file) {}

  /// The next row that is not empty; no cells at the end.
  Result<std::vector<Cell>> next() {
    std::vector<Cell> cells;
    while (at_ < text_.size() && cells.empty()) {
      for (bool more = true; more;) {
        MST_TRY(Cell cell, this->cell());
        cells.push_back(std::move(cell));
        more = at_ < text_.size() && text_[at_] == ',';
        if (at_ < text_.size()) ++at_;  // the comma or the line's end
      }
      if (cells.size() == 1 && cells[0].text.empty()) cells.clear();
    }
    return cells;
  }
  Error error(std::size_t offset, std::string message) const {
    return Error{ErrorCode::syntax, std::move(message)}.at(place_of(text_, file_, offset));
  }

 private:
  Result<Cell> cell() {
    Cell out;
    out.offset = at_;
    if (at_ < text_.size() && text_[at_] == '"') {
      for (++at_;; ++at_) {
        if (at_ >= text_.size()) return error(out.offset, "the quoted cell that begins here has no end");
        if (text_[at_] != '"') {
          out.text += text_[at_];
        } else if (at_ + 1 < text_.size() && text_[at_ + 1] == '"') {
          out.text += text_[++at_];
        } else {
          ++at_;
          break;
        }
      }
    }
    while (at_ < text_.size() && text_[at_] != ',' && text_[at_] != '\n') out.text += text_[at_++];
    const std::size_t end = out.text.find_last_not_of(" \t\r");
    out.text.erase(end == std::string::npos ? 0 : end + 1);
    out.text.erase(0, std::min(out.text.find_first_not_of(" \t"), out.text.size()));
    return out;
  }

  std::string_view text_;
  const std::string& file_;
  std::size_t at_ = 0;
};

bool same_letters(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](char x, char y) {
    return (x >= 'A' && x <= 'Z' ? x + 32 : x) == (y >= 'A' && y <= 'Z' ? y + 32 : y);
  });
}

enum Meaning : std::uint8_t { kDevice, kModel, kName, kType, kTaskType, kStream, kTask, kStart, kDuration, kBlocks, kMixBlocks, kMeanings };

struct Column {
  std::string_view header;
  Meaning meaning;
  int power = 0;  // of times: the unit is 10^power ns
};

struct Kind {
  ProfileSource source;
  std::string_view mark;  // the column that only this table has
  std::vector<Column> columns;  // of those with one meaning the first that is there counts
};

const std::vector<Kind>& kinds() {
  static const std::vector<Kind> table = {
      {ProfileSource::op_summary, "Op Name",
       {{"Device_id", kDevice}, {"Model ID", kModel}, {"Op Name", kName}, {"OP Type", kType}, {"Task Type", kTaskType}, {"Stream ID", kStream},
        {"Task ID", kTask}, {"Task Start Time(us)", kStart, 3}, {"Start Time(us)", kStart, 3}, {"Task Start Time", kStart, 0},
        {"Task Duration(us)", kDuration, 3}, {"Task Duration", kDuration, 3}, {"Block Num", kBlocks}, {"Block Dim", kBlocks},
        {"Mix Block Num", kMixBlocks}, {"Mix Block Dim", kMixBlocks}}},
      {ProfileSource::task_time, "kernel_name",
       {{"Device_id", kDevice}, {"kernel_name", kName}, {"kernel_type", kTaskType}, {"stream_id", kStream}, {"task_id", kTask},
        {"task_start(us)", kStart, 3}, {"task_time(us)", kDuration, 3}}},
      {ProfileSource::kernel_details, "Name",
       {{"Device_id", kDevice}, {"Model ID", kModel}, {"Name", kName}, {"Type", kType}, {"Accelerator Core", kTaskType}, {"Stream ID", kStream},
        {"Task ID", kTask}, {"Start Time(us)", kStart, 3}, {"Duration(us)", kDuration, 3}, {"Block Num", kBlocks}, {"Block Dim", kBlocks},
        {"Mix Block Num", kMixBlocks}, {"Mix Block Dim", kMixBlocks}}},
  };
  return table;
}

struct Places {
  const Kind* kind = nullptr;
  std::array<std::optional<std::size_t>, kMeanings> at;  // by meaning: the cell
  std::array<int, kMeanings> power = {};
};

std::optional<std::size_t> find(const std::vector<Cell>& header, std::string_view name) {
  for (std::size_t i = 0; i < header.size(); ++i) {
    if (same_letters(header[i].text, name)) return i;
  }
  return std::nullopt;
}

Result<Places> read_header(const std::vector<Cell>& header, const Rows& rows) {
  const std::string known = "op_summary, kernel_details and task_time tables and traces (.json) of the profiler have times of single tasks";
  if (find(header, "Time(%)") || find(header, "Ratio(%)")) {
    return rows.error(header[0].offset, "this report adds up the tasks of each operator, it has no times of single tasks").help(known);
  }
  if (find(header, "Iteration ID") || find(header, "Computing")) {
    return rows.error(header[0].offset, "this is a table of steps, it has no times of single tasks").help(known);
  }
  Places out;
  for (const Kind& kind : kinds()) {
    if (out.kind == nullptr && find(header, kind.mark)) out.kind = &kind;
  }
  for (const auto& [sign, word] : {std::pair(';', "semicolons"), std::pair('\t', "tabs")}) {
    if (out.kind == nullptr && header.size() == 1 && header[0].text.find(sign) != std::string::npos) {
      return rows.error(header[0].offset, fmt::format("the columns stand apart by {}, not by commas", word)).help("a program for tables writes a profile back as CSV with commas");
    }
  }
  if (out.kind == nullptr) return rows.error(header[0].offset, "no column here names operators (Op Name, Name or kernel_name)").help(known);
  for (const Column& c : out.kind->columns) {
    if (out.at[c.meaning]) continue;
    out.at[c.meaning] = find(header, c.header);
    out.power[c.meaning] = c.power;
  }
  if (!out.at[kDuration]) {
    return rows.error(header[0].offset, fmt::format("this {} table has no column of durations", to_string(out.kind->source))).help(known);
  }
  return out;
}

bool says_nothing(const Cell* cell) { return cell == nullptr || cell->text.empty() || same_letters(cell->text, "N/A"); }

}  // namespace

Result<std::vector<ProfileRecord>> read_table(std::string_view text, const std::string& file) {
  Rows rows(text, file);
  MST_TRY(const std::vector<Cell> header, rows.next());
  if (header.empty()) return rows.error(0, "the file is empty").help("a profile begins with the names of its columns, or is a trace (.json)");
  MST_TRY(const Places places, read_header(header, rows));
  std::vector<ProfileRecord> out;
  while (true) {
    MST_TRY(const std::vector<Cell> row, rows.next());
    if (row.empty()) return out;
    const auto cell = [&](Meaning m) -> const Cell* { return places.at[m] && *places.at[m] < row.size() ? &row[*places.at[m]] : nullptr; };
    const auto name_of = [&](Meaning m) { return header[*places.at[m]].text; };
    const auto word = [&](Meaning m) { return says_nothing(cell(m)) ? std::string() : cell(m)->text; };
    const auto number = [&](Meaning m) -> Result<std::optional<std::int64_t>> {
      const Cell* c = cell(m);
      if (says_nothing(c)) return std::optional<std::int64_t>();
      std::int64_t n = 0;
      const auto [stop, code] = std::from_chars(c->text.data(), c->text.data() + c->text.size(), n);
      if (code != std::errc() || stop != c->text.data() + c->text.size()) {
        return rows.error(c->offset, fmt::format("{} \"{}\" is not a number", name_of(m), c->text.substr(0, 60)));
      }
      constexpr std::int64_t kNoId = 4294967295;
      return n == kNoId ? std::optional<std::int64_t>() : std::optional<std::int64_t>(n);
    };
    const auto time = [&](Meaning m) -> Result<std::optional<std::int64_t>> {
      const Cell* c = cell(m);
      if (says_nothing(c)) return std::optional<std::int64_t>();
      const auto ns = parse_ns(c->text, places.power[m]);
      if (!ns) return rows.error(c->offset, fmt::format("{} \"{}\" is not a time", name_of(m), c->text.substr(0, 60)));
      return ns;
    };
    ProfileRecord r;
    r.source = places.kind->source;
    r.op_name = word(kName);
    r.op_type = word(kType);
    r.task_type = word(kTaskType);
    MST_TRY(r.device, number(kDevice));
    MST_TRY(r.model, number(kModel));
    MST_TRY(r.stream, number(kStream));
    MST_TRY(r.task, number(kTask));
    MST_TRY(r.blocks, number(kBlocks));
    MST_TRY(r.mix_blocks, number(kMixBlocks));
    MST_TRY(r.start_ns, time(kStart));
    MST_TRY(const std::optional<std::int64_t> duration, time(kDuration));
    if (!duration) continue;
    r.dur_ns = *duration;
    out.push_back(std::move(r));
  }
}

}  // namespace millstream
