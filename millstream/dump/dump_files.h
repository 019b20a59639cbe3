// SPDX-License-Identifier: Apache-2.0
// The dump files of one process: which phases are wanted, how they are called, where they go.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "millstream/dump/dump.h"

namespace millstream {

// Phases that users of the ecosystem know. After them: the pass.
inline constexpr std::string_view kPhasePreRunBegin = "PreRunBegin";
inline constexpr std::string_view kPhaseBeforeAssigned = "BeforeAssignedLogicalStreams";
inline constexpr std::string_view kPhaseAfterAssigned = "AfterAssignedLogicalStreams";
inline constexpr std::string_view kPhaseBeforeRefresh = "BeforeRefreshRealStream";
inline constexpr std::string_view kPhaseAfterRefresh = "AfterRefreshRealStream";
inline constexpr std::string_view kPhaseBuild = "Build";
std::string phase_before_pass(std::string_view pass);
std::string phase_after_pass(std::string_view pass);

struct DumpSettings {
  std::optional<DumpDetail> detail;  ///< none: nothing is dumped
  enum class Phases : std::uint8_t {
    all,        ///< subgraphs as files of their own too
    main,       ///< whole graphs only
    build,      ///< Build only
    begin,      ///< PreRunBegin only
    named,      ///< those whose name holds one of `names`
  };
  Phases phases = Phases::main;
  std::vector<std::string> names;
  bool onnx = true;
  bool proto = true;
  std::string folder;  ///< empty: the current one
  std::optional<std::uint64_t> max_files;  ///< of each format; no file with a larger number
  std::optional<std::uint64_t> max_bytes;  ///< of one file; a larger one is removed
};

struct DumpSettingsRead {
  DumpSettings settings;
  std::vector<Error> warnings;
};

/// From DUMP_GE_GRAPH, DUMP_GRAPH_LEVEL, DUMP_GRAPH_FORMAT, DUMP_GRAPH_PATH and their neighbours (docs/dumps.md). `variable`
/// gives a variable's text, empty where it is not set. Texts that are no values are warned about and count as not set.
DumpSettingsRead dump_settings(const std::function<std::string(const char*)>& variable, std::int64_t process, std::int64_t device);

/// Numbers files of each format from 0, over all graphs of the process. Not for concurrent callers.
class DumpFiles {
 public:
  DumpFiles() = default;
  explicit DumpFiles(DumpSettings settings) : settings_(std::move(settings)) {}

  bool on() const { return settings_.detail.has_value(); }
  /// Whether files of that phase are written, so that a caller need not make ready what no one wants.
  bool wants(std::string_view phase) const;
  /// Writes the graph, and with Phases::all each subgraph, in every format asked for. What cannot be written is a
  /// warning: no dump stops a compilation.
  std::vector<Error> dump(const Graph& graph, const DumpStreams& streams, std::string_view phase, std::int64_t graph_id = 0);
  /// The same of one subgraph (as write_subgraph_dump numbers them) as a graph of its own.
  std::vector<Error> dump_subgraph(const Graph& graph, std::size_t subgraph, const DumpStreams& streams, std::string_view phase, std::int64_t graph_id);
  const std::vector<std::string>& written() const { return written_; }

 private:
  using Text = std::function<std::string(DumpFormat)>;
  void write_each(std::string_view phase, std::int64_t graph_id, const Text& text, std::vector<Error>& warnings);
  void write(DumpFormat format, std::int64_t graph_id, std::string_view suffix, const std::function<std::string()>& text,
             std::vector<Error>& warnings);
  std::string folder(std::vector<Error>& warnings);

  DumpSettings settings_;
  std::uint64_t next_onnx_ = 0, next_proto_ = 0;
  std::optional<std::string> folder_;
  std::vector<std::string> written_;
};

/// The name of a dump file, taken apart; none where it is no such name.
struct DumpFileName {
  std::string format;  ///< "onnx", "proto" or "readable"
  std::uint64_t number = 0;
  std::optional<std::int64_t> graph_id;
  std::string phase;
};
std::optional<DumpFileName> parse_dump_name(std::string_view file_name);

}  // namespace millstream
