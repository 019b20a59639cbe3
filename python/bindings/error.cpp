// SPDX-License-Identifier: Apache-2.0
// Errors of the core as one Python exception.
#include <fmt/format.h>

#include "python/bindings/bindings.h"

namespace millstream::python {
namespace {

constexpr const char* kDoc =
    "What the core refuses.\n\n"
    "code: the error's number, for example \"E02\" (docs/errors.md has cause and remedy of each).\n"
    "word: its word, for example \"conflict\".\n"
    "what: the message alone.\n"
    "where: \"FILE:LINE\" of the Python program, or None.\n"
    "help: what to do, one line each; may be empty.\n"
    "notes: more facts.";

nb::object error_object(nb::handle type, const Error& error) {
  nb::object out = type(to_string(error));
  const ErrorCodeInfo& info = error_code_info(error.code);
  std::string help;
  nb::list notes;
  for (const Note& n : error.notes) {
    if (n.kind == Note::Kind::help) {
      help += (help.empty() ? "" : "\n") + n.text;
    } else {
      notes.append(n.text);
    }
  }
  out.attr("code") = std::string(info.number);
  out.attr("word") = std::string(info.word);
  out.attr("what") = error.message;
  out.attr("help") = help;
  out.attr("notes") = notes;
  out.attr("where") = error.where ? nb::object(nb::cast(fmt::format("{}:{}", error.where->file, error.where->line))) : nb::object(nb::none());
  return out;
}

void translate(const std::exception_ptr& thrown, void* type) {
  try {
    std::rethrow_exception(thrown);
  } catch (const ErrorThrown& e) {
    const nb::handle error_type(static_cast<PyObject*>(type));
    PyErr_SetObject(error_type.ptr(), error_object(error_type, e.error).ptr());
  }
}

}  // namespace

void value_of(Result<void> result) {
  if (!result.ok()) throw ErrorThrown{std::move(result).error()};
}

void bind_errors(nb::module_& m) {
  PyObject* const type = PyErr_NewExceptionWithDoc("millstream.Error", kDoc, PyExc_RuntimeError, nullptr);
  if (type == nullptr) throw nb::python_error();
  m.attr("Error") = nb::steal(type);
  nb::register_exception_translator(translate, type);
}

}  // namespace millstream::python
