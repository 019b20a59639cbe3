// SPDX-License-Identifier: Apache-2.0
// Model instances of acl/acl_rt.h.
#include <fmt/format.h>

#include "compat/src/acl/call.h"

namespace millstream::acl {
namespace {

// A model of the current context.
struct ModelHere {
  Use<ModelObject> object;
  Use<ContextObject> context;
  Model* operator->() const { return &object->native; }
};

// Errors: wrong_model_context, for the model or the stream.
Result<void> same_context(const ModelObject& model, const char* what, const rt::ContextState* of) {
  if (model.context() == of) return {};
  return Error{ErrorCode::wrong_model_context, fmt::format("model {} belongs to context {}; {} context {}", model.native.state()->number,
                                                           model.context()->number, what, of->number)}
      .help("aclrtSetCurrentContext to the context it was made in");
}

Result<ModelHere> model_in_current(Use<ModelObject> model) {
  MST_TRY(auto context, current());
  MST_TRY_VOID(same_context(*model, "current is", context->native.state().get()));
  return ModelHere{std::move(model), std::move(context)};
}

Result<ModelHere> model_here(const void* handle) {
  MST_TRY_VOID(not_null({{handle, "modelRI"}}));
  MST_TRY(auto model, find<ModelObject>(handle));
  return model_in_current(std::move(model));
}

// A call on a model and one of its streams.
template <class Body>
Result<void> with_stream(const void* model, const void* stream, Body body) {
  MST_TRY_VOID(not_null({{model, "modelRI"}, {stream, "stream (the default stream cannot be bound)"}}));
  MST_TRY(auto object, find<ModelObject>(model));
  MST_TRY(const auto s, find<StreamObject>(stream));
  MST_TRY(const auto m, model_in_current(std::move(object)));
  MST_TRY_VOID(same_context(*m.object, "the stream to", s->context()));
  return body(m, s->native);
}

}  // namespace
}  // namespace millstream::acl

using namespace millstream;
using namespace millstream::acl;

aclError aclmdlRIBuildBegin(aclmdlRI* modelRI, uint32_t flag) {
  return run("aclmdlRIBuildBegin", [&]() -> Result<void> {
    MST_TRY_VOID(not_null({{modelRI, "modelRI"}}));
    MST_TRY(auto context, current());
    if (flag != 0) return Error{ErrorCode::bad_value, fmt::format("flag {:#x}", flag)}.help("0");
    MST_TRY(Model native, context->native.begin_model());
    MST_TRY(*modelRI, publish<ModelObject>(context, std::move(native)));
    return {};
  });
}

aclError aclmdlRIBindStream(aclmdlRI modelRI, aclrtStream stream, uint32_t flag) {
  return run("aclmdlRIBindStream", [&] {
    return with_stream(modelRI, stream, [&](const ModelHere& m, Stream& s) -> Result<void> {
      if (flag != ACL_MODEL_STREAM_FLAG_HEAD && flag != ACL_MODEL_STREAM_FLAG_DEFAULT) {
        return Error{ErrorCode::bad_value, fmt::format("flag {:#x}", flag)}.help("ACL_MODEL_STREAM_FLAG_HEAD or ACL_MODEL_STREAM_FLAG_DEFAULT");
      }
      return m->bind(s, flag == ACL_MODEL_STREAM_FLAG_HEAD ? StreamRole::head : StreamRole::activated);
    });
  });
}

aclError aclmdlRIEndTask(aclmdlRI modelRI, aclrtStream stream) {
  return run("aclmdlRIEndTask", [&] {
    return with_stream(modelRI, stream, [](const ModelHere& m, Stream& s) { return m->end_tasks(s); });
  });
}

aclError aclmdlRIBuildEnd(aclmdlRI modelRI, void* reserve) {
  return run("aclmdlRIBuildEnd", [&]() -> Result<void> {
    MST_TRY(const auto m, model_here(modelRI));
    if (reserve != nullptr) return Error{ErrorCode::bad_value, "reserve is not null"}.help("pass null");
    return m->finish();
  });
}

aclError aclmdlRIExecute(aclmdlRI modelRI, int32_t timeout) {
  return run("aclmdlRIExecute", [&]() -> Result<void> {
    MST_TRY(const auto m, model_here(modelRI));
    MST_TRY(const Deadline deadline, milliseconds(timeout));
    return m->execute(deadline);
  });
}

aclError aclmdlRIExecuteAsync(aclmdlRI modelRI, aclrtStream stream) {
  return run("aclmdlRIExecuteAsync", [&]() -> Result<void> {
    if (stream != nullptr) {
      return with_stream(modelRI, stream, [](const ModelHere& m, Stream& s) { return m->execute_async(s); });
    }
    MST_TRY(const auto m, model_here(modelRI));
    return m->execute_async(m.context->default_stream);
  });
}

aclError aclmdlRIUnbindStream(aclmdlRI modelRI, aclrtStream stream) {
  return run("aclmdlRIUnbindStream", [&] {
    return with_stream(modelRI, stream, [](const ModelHere& m, Stream& s) { return m->unbind(s); });
  });
}

aclError aclmdlRIDestroy(aclmdlRI modelRI) {
  return run("aclmdlRIDestroy", [&]() -> Result<void> {
    MST_TRY(auto m, model_here(modelRI));
    MST_TRY_VOID(m->close());
    unpublish(std::move(m.object), m.context);
    return {};
  });
}

aclError aclrtSwitchStream(void* leftValue, aclrtCondition cond, void* rightValue, aclrtCompareDataType dataType, aclrtStream trueStream,
                           aclrtStream falseStream, aclrtStream stream) {
  return run("aclrtSwitchStream", [&]() -> Result<void> {
    MST_TRY_VOID(not_null({{leftValue, "leftValue"}, {rightValue, "rightValue"}, {trueStream, "trueStream"}, {stream, "stream (the default stream cannot be bound)"}}));
    MST_TRY(const auto target, find<StreamObject>(trueStream));
    MST_TRY(const auto s, find<StreamObject>(stream));
    MST_TRY(const auto context, current());
    MST_TRY_VOID(belongs("trueStream", target, context));
    MST_TRY_VOID(belongs("the stream", s, context));
    const int condition = number_of(cond), type = number_of(dataType);
    if (condition < ACL_RT_EQUAL || condition > ACL_RT_LESS_OR_EQUAL) {
      return Error{ErrorCode::bad_value, fmt::format("cond {}", condition)}.help("ACL_RT_EQUAL (0) to ACL_RT_LESS_OR_EQUAL (5)");
    }
    if (type != ACL_RT_SWITCH_INT32 && type != ACL_RT_SWITCH_INT64) {
      return Error{ErrorCode::bad_value, fmt::format("dataType {}", type)}.help("ACL_RT_SWITCH_INT32 (0) or ACL_RT_SWITCH_INT64 (1)");
    }
    if (falseStream != nullptr) return Error{ErrorCode::bad_value, "falseStream is not null"}.help("pass null: where the condition does not hold the stream goes on");
    return Tape(s->native).switch_to(static_cast<Comparison>(condition), leftValue, rightValue, static_cast<IntType>(type), target->native);
  });
}
