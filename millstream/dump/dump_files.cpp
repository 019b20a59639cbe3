// SPDX-License-Identifier: Apache-2.0
#include "millstream/dump/dump_files.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>

#include <fmt/format.h>

namespace millstream {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kLongestPath = 255;

template <class T>
std::optional<T> number(std::string_view text) {
  T value = 0;
  const auto [stop, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  return code == std::errc() && stop == text.data() + text.size() && !text.empty() ? std::optional(value) : std::nullopt;
}

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> out;
  std::size_t begin = 0;
  for (;;) {
    const std::size_t end = text.find('|', begin);
    if (end != begin && begin < text.size()) out.push_back(text.substr(begin, end - begin));
    if (end == std::string::npos) return out;
    begin = end + 1;
  }
}

// A phase becomes part of a file's name.
std::string as_name(std::string_view phase) {
  std::string out(phase);
  for (char& c : out) c = c == '/' || static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? '_' : c;
  return out;
}

}  // namespace

std::string phase_before_pass(std::string_view pass) { return fmt::format("RunCustomPass_BeforeAssignLogicStream{}", pass); }
std::string phase_after_pass(std::string_view pass) { return fmt::format("RunCustomPass_AfterAssignLogicStream{}", pass); }

DumpSettingsRead dump_settings(const std::function<std::string(const char*)>& variable, std::int64_t process, std::int64_t device) {
  DumpSettingsRead out;
  DumpSettings& s = out.settings;
  const auto ignored = [&](const char* name, const std::string& text, std::string_view values) {
    out.warnings.push_back(Error{ErrorCode::bad_option, fmt::format("{}={} has no effect", name, text)}.help(fmt::format("values: {}", values)));
  };
  if (const std::string text = variable("DUMP_GE_GRAPH"); text == "1" || text == "2" || text == "3") {
    s.detail = static_cast<DumpDetail>(text[0] - '0');
  } else if (!text.empty()) {
    ignored("DUMP_GE_GRAPH", text, "1 everything, 2 no weights, 3 links only");
  }
  if (const std::string text = variable("DUMP_GRAPH_LEVEL"); text == "1") {
    s.phases = DumpSettings::Phases::all;
  } else if (text == "3") {
    s.phases = DumpSettings::Phases::build;
  } else if (text == "4") {
    s.phases = DumpSettings::Phases::begin;
  } else if (!text.empty() && text != "2") {
    const std::vector<std::string> names = split(text);
    const bool numeric = std::any_of(names.begin(), names.end(), [](const std::string& name) { return number<std::int64_t>(name).has_value(); });
    if (numeric || names.empty()) {
      ignored("DUMP_GRAPH_LEVEL", text, "1 all, 2 whole graphs, 3 Build, 4 PreRunBegin, or parts of names as a|b");
    } else {
      s.phases = DumpSettings::Phases::named;
      s.names = names;
    }
  }
  if (const std::string text = variable("DUMP_GRAPH_FORMAT"); !text.empty()) {
    bool onnx = false, proto = false;
    for (const std::string& word : split(text)) {
      onnx = onnx || word == "onnx";
      proto = proto || word == "ge_proto";
      if (word != "onnx" && word != "ge_proto") ignored("DUMP_GRAPH_FORMAT", word, "onnx, ge_proto, or both as onnx|ge_proto");
    }
    if (onnx || proto) {
      s.onnx = onnx;
      s.proto = proto;
    }
  }
  const std::string own = fmt::format("pid_{}_deviceid_{}", process, device);
  if (const std::string path = variable("ASCEND_DUMP_PATH"); !path.empty()) {
    s.folder = (fs::path(path) / own).string();
  } else if (const std::string collect = variable("NPU_COLLECT_PATH"); !collect.empty()) {
    s.folder = (fs::path(collect) / "extra-info" / "graph" / fmt::format("{}_{}", process, device)).string();
  } else if (const std::string graphs = variable("DUMP_GRAPH_PATH"); !graphs.empty()) {
    s.folder = (fs::path(graphs) / own).string();
  } else if (const std::string work = variable("ASCEND_WORK_PATH"); !work.empty()) {
    s.folder = (fs::path(work) / own).string();
  }
  return out;
}

bool DumpFiles::wants(std::string_view phase) const {
  if (!on()) return false;
  switch (settings_.phases) {
    case DumpSettings::Phases::all: return true;
    case DumpSettings::Phases::main: return phase.find("_sub_graph_") == std::string_view::npos;
    case DumpSettings::Phases::build: return phase == kPhaseBuild;
    case DumpSettings::Phases::begin: return phase == kPhasePreRunBegin;
    case DumpSettings::Phases::named:
      return std::any_of(settings_.names.begin(), settings_.names.end(), [&](const std::string& name) { return phase.find(name) != std::string_view::npos; });
  }
  return false;
}

// Made when the first file needs it. One that cannot be made or written to gives way to the current folder.
std::string DumpFiles::folder(std::vector<Error>& warnings) {
  if (folder_) return *folder_;
  folder_ = settings_.folder;
  if (!folder_->empty()) {
    std::error_code ec;
    fs::create_directories(*folder_, ec);
    if (ec || ::access(folder_->c_str(), W_OK) != 0) {
      warnings.push_back(Error{ErrorCode::io, fmt::format("cannot write dumps to \"{}\": {}", *folder_, ec ? ec.message() : std::string(std::strerror(errno)))}.note("they go to the current folder"));
      folder_->clear();
    }
  }
  return *folder_;
}

void DumpFiles::write(DumpFormat format, std::int64_t graph_id, std::string_view suffix, const std::function<std::string()>& text,
                      std::vector<Error>& warnings) {
  const bool onnx = format == DumpFormat::onnx;
  const std::uint64_t index = (onnx ? next_onnx_ : next_proto_)++;
  if (settings_.max_files && index > *settings_.max_files) return;
  const std::string_view extension = onnx ? ".pbtxt" : ".txt";
  std::string path = (fs::path(folder(warnings)) / fmt::format("ge_{}_{:08}_graph_{}_{}{}", onnx ? "onnx" : "proto", index, graph_id, as_name(suffix), extension)).string();
  if (path.size() >= kLongestPath) path = path.substr(0, kLongestPath - 1 - extension.size()) + std::string(extension);
  const std::string bytes = text();
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  bool good = fd >= 0;
  for (std::size_t done = 0; good && done < bytes.size();) {
    const ssize_t n = ::write(fd, bytes.data() + done, bytes.size() - done);
    if (n < 0 && errno == EINTR) continue;
    good = n > 0;
    if (good) done += static_cast<std::size_t>(n);
  }
  if (!good) warnings.push_back(Error{ErrorCode::io, fmt::format("cannot write the dump \"{}\": {}", path, std::strerror(errno))});
  if (fd >= 0) ::close(fd);
  if (!good) return;
  if (settings_.max_bytes && bytes.size() > *settings_.max_bytes) {
    ::unlink(path.c_str());
    return;
  }
  written_.push_back(std::move(path));
}

void DumpFiles::write_each(std::string_view phase, std::int64_t graph_id, const Text& text, std::vector<Error>& warnings) {
  if (!wants(phase)) return;
  if (settings_.onnx) write(DumpFormat::onnx, graph_id, phase, [&] { return text(DumpFormat::onnx); }, warnings);
  if (settings_.proto) write(DumpFormat::proto, graph_id, phase, [&] { return text(DumpFormat::proto); }, warnings);
}

std::vector<Error> DumpFiles::dump(const Graph& graph, const DumpStreams& streams, std::string_view phase, std::int64_t graph_id) {
  std::vector<Error> warnings;
  if (!on()) return warnings;
  write_each(phase, graph_id, [&](DumpFormat format) { return write_dump(graph, streams, format, *settings_.detail); }, warnings);
  const std::size_t subgraphs = dump_subgraphs(graph);
  for (std::size_t i = 0; i < subgraphs; ++i) {
    write_each(fmt::format("{}_sub_graph_{}", phase, i), graph_id,
               [&](DumpFormat format) { return write_subgraph_dump(graph, i, streams, format, *settings_.detail); }, warnings);
  }
  return warnings;
}

std::vector<Error> DumpFiles::dump_subgraph(const Graph& graph, std::size_t subgraph, const DumpStreams& streams, std::string_view phase, std::int64_t graph_id) {
  std::vector<Error> warnings;
  if (!on()) return warnings;
  write_each(phase, graph_id, [&](DumpFormat format) { return write_subgraph_dump(graph, subgraph, streams, format, *settings_.detail); }, warnings);
  return warnings;
}

std::optional<DumpFileName> parse_dump_name(std::string_view name) {
  DumpFileName out;
  const auto take = [&](std::string_view text) {
    if (name.substr(0, text.size()) != text) return false;
    name.remove_prefix(text.size());
    return true;
  };
  if (!take("ge_")) return std::nullopt;
  for (const std::string_view format : {"onnx", "proto", "readable"}) {
    if (out.format.empty() && take(format)) out.format = format;
  }
  if (out.format.empty() || !take("_")) return std::nullopt;
  if (name.size() > 6 && name.substr(name.size() - 6) == ".pbtxt") {
    name.remove_suffix(6);
  } else if (name.size() > 4 && name.substr(name.size() - 4) == ".txt") {
    name.remove_suffix(4);
  } else {
    return std::nullopt;
  }
  const std::size_t digits = std::min(name.find('_'), name.size());
  const auto index = number<std::uint64_t>(name.substr(0, digits));
  if (!index) return std::nullopt;
  out.number = *index;
  name.remove_prefix(digits);
  if (take("_graph_")) {
    const std::size_t end = std::min(name.find('_'), name.size());
    const auto id = number<std::int64_t>(name.substr(0, end));
    if (!id) return std::nullopt;
    out.graph_id = *id;
    name.remove_prefix(end);
  }
  if (!take("_") && !name.empty()) return std::nullopt;
  out.phase = std::string(name);
  return out;
}

}  // namespace millstream
