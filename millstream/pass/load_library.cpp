// SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>

#include <fmt/format.h>

#include "millstream/pass/foreign_code.h"
#include "millstream/pass/library.h"

namespace millstream {
namespace {

Error refuse(const std::string& path, std::string_view why) {
  return Error{ErrorCode::pass_library, fmt::format("pass library \"{}\" {}", path, why)};
}

// What the other side wrote, as far as it goes; zero beyond.
template <class T>
T copy_of(const T* from) {
  T out;
  std::memset(&out, 0, sizeof out);
  std::memcpy(&out, from, std::min<std::size_t>(from->struct_size, sizeof out));
  return out;
}

// The loader's words name the descriptor.
std::string said(const std::string& name) {
  const char* text = ::dlerror();
  std::string out = text == nullptr ? "no reason given" : text;
  if (out.rfind(name + ": ", 0) == 0) out.erase(0, name.size() + 2);
  return out;
}

Result<mst_plugin_desc> ask(const std::string& path, void* handle) {
  void* symbol = ::dlsym(handle, MST_PLUGIN_QUERY);
  // dlsym also looks into the libraries that this one needs.
  Dl_info info{};
  link_map *own = nullptr, *of_symbol = nullptr;
  const bool here = symbol != nullptr && ::dlinfo(handle, RTLD_DI_LINKMAP, &own) == 0 &&
                    ::dladdr1(symbol, &info, reinterpret_cast<void**>(&of_symbol), RTLD_DL_LINKMAP) != 0 && own == of_symbol;
  if (!here) {
    return refuse(path, fmt::format("exports no {}", MST_PLUGIN_QUERY))
        .note("libraries that were built against headers of another vendor cannot be loaded, their sources can be built again")
        .help("include register/register_custom_pass.h of millstream, register a pass, build again");
  }
  const mst_plugin_desc* desc = reinterpret_cast<mst_plugin_query>(symbol)();
  if (desc == nullptr || desc->struct_size < offsetof(mst_plugin_desc, entry) + sizeof desc->entry) {
    return refuse(path, fmt::format("answers {} with nothing that can be read", MST_PLUGIN_QUERY));
  }
  if (desc->major != MST_PASS_ABI_MAJOR || desc->minor > MST_PASS_ABI_MINOR) {
    return refuse(path, fmt::format("speaks version {}.{} of the interface, this program {}.{}", desc->major, desc->minor, MST_PASS_ABI_MAJOR,
                                    MST_PASS_ABI_MINOR))
        .help("build it against the headers of this millstream");
  }
  return copy_of(desc);
}

// Of this process, by device and inode; each file stays open. The system's loader tells libraries apart by name first, and
// remembers each name that led to one, so the name of a descriptor must never come to mean another file.
struct Handles {
  std::mutex mutex;
  std::map<std::pair<std::uint64_t, std::uint64_t>, void*> of;
};
Handles& handles() {
  static Handles all;
  return all;
}

}  // namespace

Result<LoadedLibrary> load_library(CheckedLibrary library) {
  const std::string& path = library.path_;
  const ForeignCodeScope scope(ErrorCode::pass_library, fmt::format("pass library \"{}\"", path));
  void* handle = nullptr;
  {
    const std::lock_guard<std::mutex> lock(handles().mutex);
    void*& known = handles().of[library.identity()];
    if (known == nullptr) {
      const std::string name = fmt::format("/proc/self/fd/{}", library.fd_);
      known = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
      if (known == nullptr) {
        handles().of.erase(library.identity());
        return refuse(path, fmt::format("cannot be loaded: {}", said(name)));
      }
      library.fd_ = -1;  // stays open
    }
    handle = known;
  }

  MST_TRY(const mst_plugin_desc desc, ask(path, handle));
  LoadedLibrary out;
  for (std::size_t i = 0; i < desc.count; ++i) {
    const mst_pass_entry* from = desc.entry(i);
    if (from == nullptr || from->struct_size < offsetof(mst_pass_entry, functions) + sizeof from->functions) {
      return refuse(path, fmt::format("has a pass {} that cannot be read", i));
    }
    const mst_pass_entry entry = copy_of(from);
    StreamPass pass;
    pass.name.assign(entry.name.data == nullptr ? "" : entry.name.data, entry.name.size);
    // A name stands inside lines of messages.
    std::ranges::replace_if(pass.name, [](unsigned char c) { return c < 0x20 || c == 0x7F; }, '?');
    pass.library = path;
    pass.self = entry.self;
    pass.run = entry.run;
    const auto leave_out = [&](std::string_view why, std::string_view help) {
      Error warning = refuse(path, fmt::format("registers pass \"{}\", {}", pass.name, why));
      out.warnings.push_back(std::move(warning.help(std::string(help))));
    };
    const bool edits = (entry.functions & MST_PASS_EDITS_GRAPHS) != 0;
    if (pass.run == nullptr && !edits) {
      leave_out("which has no function", "set one with CustomAllocateStreamPassFn");
    } else if (edits && entry.stage == MST_STAGE_AFTER_ASSIGN_LOGIC_STREAM) {
      leave_out("which edits the graph, at a stage that takes stream passes only", "take CustomAllocateStreamPassFn, not CustomPassFn");
    } else if (pass.run == nullptr) {
      leave_out("which edits the graph: millstream runs stream passes only", "CustomAllocateStreamPassFn registers a stream pass");
    } else if (entry.stage != MST_STAGE_AFTER_ASSIGN_LOGIC_STREAM && entry.stage != MST_STAGE_NOT_NAMED) {
      leave_out(fmt::format("a stream pass at stage {}; they run at stage {}", entry.stage, MST_STAGE_AFTER_ASSIGN_LOGIC_STREAM),
                "drop Stage(...): a stream pass needs none");
    } else {
      out.passes.push_back(std::move(pass));
    }
  }
  return out;
}

}  // namespace millstream
