// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <exception>
#include <new>
#include <string_view>
#include <system_error>

#include <fmt/format.h>

#include "tools/millstream/common.h"
#include "tools/millstream/foreign_code.h"

namespace {

// A descriptor that is closed would go to the next file that is opened, and what is printed into that file.
void open_standard_streams() {
  for (int fd = 0; fd <= 2; ++fd) {
    if (::fcntl(fd, F_GETFD) == -1 && errno == EBADF) (void)!::open("/dev/null", O_RDWR);
  }
}

using millstream::Error;
using millstream::ErrorCode;

int cannot_print(std::string_view why) {
  millstream::cli::complain(fmt::format("error: cannot write to the standard output: {} [E32 file]\n", why));
  return 2;
}

int run(int argc, char** argv) {
  using namespace millstream;
  CLI::App app{"millstream: run a computation graph on many device streams, with a proof"};
  app.name("millstream");
  app.set_version_flag("--version", "millstream 0.1.0");
  app.require_subcommand(1);
  app.footer("Examples:\n"
             "  millstream compile model.onnx --streams 4 -o model.plan\n"
             "  millstream run model.plan --input x=x.npy --output y=y.npy\n"
             "  millstream explain E37\n\n"
             "Exit status: 0 done, 1 a check or expectation failed, 2 bad usage or input, 3 a limit, 4 internal error.\n"
             "Each command has --help. Documentation: docs/cli.md.");
  int status = 0;
  const bool json = argc > 1 && std::any_of(argv + 1, argv + argc, [](std::string_view a) { return a == "--json"; });
  cli::print_errors_as_json(json);
  cli::guard_foreign_code(json);
  cli::add_compile(app, status);
  cli::add_run(app, status);
  cli::add_check(app, status);
  cli::add_explain(app, status);
  cli::add_diff(app, status);
  cli::add_convert(app, status);
  cli::add_report(app, status);
  cli::add_gen(app, status);
  cli::add_options(app, status);
  cli::add_passes(app, status);
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp& e) {
    return app.exit(e);
  } catch (const CLI::CallForAllHelp& e) {
    return app.exit(e);
  } catch (const CLI::CallForVersion& e) {
    return app.exit(e);
  } catch (const CLI::ParseError& e) {
    const auto commands = app.get_subcommands([](CLI::App*) { return true; });
    const auto is_first_word = [&](const CLI::App* command) { return argc > 1 && command->get_name() == argv[1]; };
    if (argc > 1 && argv[1][0] != '-' && std::none_of(commands.begin(), commands.end(), is_first_word)) {
      std::string known;
      for (const CLI::App* command : commands) known += (known.empty() ? "" : ", ") + command->get_name();
      return cli::fail(Error{ErrorCode::usage, fmt::format("there is no command \"{}\"", argv[1])}.help("commands: " + known));
    }
    return cli::fail(Error{ErrorCode::usage, e.what()}.help(
        fmt::format("millstream {}--help", argc > 1 && argv[1][0] != '-' ? fmt::format("{} ", argv[1]) : "")));
  } catch (const std::bad_alloc&) {
    return cli::fail(Error{ErrorCode::memory_limit, "out of memory"}.help("--max-memory BYTES refuses large tensors early"));
  } catch (const std::system_error& e) {
    if (std::ferror(stdout) != 0) return cannot_print(e.code().message());
    cli::complain(fmt::format("error: {} [E99 internal]\n", e.what()));
    return 4;
  } catch (const std::exception& e) {
    cli::complain(fmt::format("error: {} [E99 internal]\n", e.what()));
    return 4;
  }
  return status;
}

}  // namespace

int main(int argc, char** argv) {
  open_standard_streams();
  const int status = run(argc, argv);
  // Output that did not arrive is no success.
  if (std::fflush(stdout) != 0 && status == 0) return cannot_print(std::generic_category().message(errno));
  return status;
}
