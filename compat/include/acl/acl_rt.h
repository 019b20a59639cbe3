/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Devices, contexts, streams, events, notifies, memory, model instances. Written from public documentation, not from another header;
 * docs/acl.md says what is there, docs/misuse.md what each call answers to wrong use. C11 and C++.
 *
 * A handle is a number: no call looks behind it, and a stale or random one gives 107017. A null stream is the default
 * stream of the current context. An output is written only on success.
 */
#pragma once

#include "acl/acl_base.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef void *aclrtContext;
typedef void *aclrtStream;
typedef void *aclrtEvent;
typedef void *aclrtNotify;
typedef void *aclmdlRI;
typedef void (*aclrtHostFunc)(void *args);

/*
 * Devices. Each SetDevice adds a reference and makes the primary context current; ResetDevice takes one away, and the last
 * closes the device. A SetDevice meanwhile waits for its end.
 */
aclError aclrtGetDeviceCount(uint32_t *count);
aclError aclrtSetDevice(int32_t deviceId);
aclError aclrtGetDevice(int32_t *deviceId);
aclError aclrtResetDevice(int32_t deviceId);
aclError aclrtResetDeviceForce(int32_t deviceId);
/** Waits for every stream of the current context. */
aclError aclrtSynchronizeDevice(void);
/** The lower number goes first: leastPriority 7, greatestPriority 0. */
aclError aclrtDeviceGetStreamPriorityRange(int32_t *leastPriority, int32_t *greatestPriority);

/* Contexts. A new one becomes current in the calling thread; SetCurrentContext(NULL) unbinds the thread. */
aclError aclrtCreateContext(aclrtContext *context, int32_t deviceId);
aclError aclrtDestroyContext(aclrtContext context);
aclError aclrtSetCurrentContext(aclrtContext context);
aclError aclrtGetCurrentContext(aclrtContext *context);

/* Streams. */
#define ACL_STREAM_FAST_LAUNCH 0x00000001U
#define ACL_STREAM_FAST_SYNC 0x00000002U
#define ACL_STREAM_PERSISTENT 0x00000004U
#define ACL_STREAM_HUGE 0x00000008U
#define ACL_STREAM_CPU_SCHEDULE 0x00000010U

#define ACL_CONTINUE_ON_FAILURE 0x00000000U
#define ACL_STOP_ON_FAILURE 0x00000001U

typedef enum { ACL_STREAM_STATUS_COMPLETE = 0, ACL_STREAM_STATUS_NOT_READY = 1 } aclrtStreamStatus;
typedef enum { ACL_STREAM_ATTR_FAILURE_MODE = 1 } aclrtStreamAttr;
typedef union {
  uint64_t failureMode;
} aclrtStreamAttrValue;

aclError aclrtCreateStream(aclrtStream *stream);
aclError aclrtCreateStreamWithConfig(aclrtStream *stream, uint32_t priority, uint32_t flag);
/** Waits for the stream's tasks. An error of a task that nobody was told of is returned; the stream is gone then. */
aclError aclrtDestroyStream(aclrtStream stream);
/** Drops what is queued and does not wait for the task that runs. */
aclError aclrtDestroyStreamForce(aclrtStream stream);
aclError aclrtSynchronizeStream(aclrtStream stream);
/** Milliseconds, -1: for ever. On expiry the stream's work goes on. */
aclError aclrtSynchronizeStreamWithTimeout(aclrtStream stream, int32_t timeout);
aclError aclrtStreamQuery(aclrtStream stream, aclrtStreamStatus *status);
/** Once a stream. One stream that stops on failure makes its whole context do so. */
aclError aclrtSetStreamFailureMode(aclrtStream stream, uint64_t mode);
aclError aclrtSetStreamAttribute(aclrtStream stream, aclrtStreamAttr stmAttrType, aclrtStreamAttrValue *value);
/** Drops what is queued; returns when the task that runs has ended. A model's execution that has begun goes on. */
aclError aclrtStreamAbort(aclrtStream stream);
/** Runs after all earlier and before all later tasks of the stream. It must not call this interface. */
aclError aclrtLaunchHostFunc(aclrtStream stream, aclrtHostFunc fn, void *args);

/*
 * Events. CreateEvent and CreateEventWithFlag: one bit, not set at first; a wait blocks until a record sets it,
 * ResetEvent clears it. CreateEventExWithFlag: a record replaces the last, a wait is for the record before it.
 */
#define ACL_EVENT_SYNC 0x00000001U
#define ACL_EVENT_CAPTURE_STREAM_PROGRESS 0x00000002U
#define ACL_EVENT_TIME_LINE 0x00000008U

typedef enum { ACL_EVENT_STATUS_COMPLETE = 0, ACL_EVENT_STATUS_NOT_READY = 1 } aclrtEventStatus;
/** The numbers are the other way round than those of aclrtEventStatus. */
typedef enum { ACL_EVENT_RECORDED_STATUS_NOT_READY = 0, ACL_EVENT_RECORDED_STATUS_COMPLETE = 1 } aclrtEventRecordedStatus;

/** As with the flags SYNC and TIME_LINE. */
aclError aclrtCreateEvent(aclrtEvent *event);
aclError aclrtCreateEventWithFlag(aclrtEvent *event, uint32_t flag);
aclError aclrtCreateEventExWithFlag(aclrtEvent *event, uint32_t flag);
aclError aclrtDestroyEvent(aclrtEvent event);
aclError aclrtRecordEvent(aclrtEvent event, aclrtStream stream);
aclError aclrtResetEvent(aclrtEvent event, aclrtStream stream);
/** The event may be of another context. */
aclError aclrtStreamWaitEvent(aclrtStream stream, aclrtEvent event);
aclError aclrtQueryEvent(aclrtEvent event, aclrtEventStatus *status);
aclError aclrtQueryEventStatus(aclrtEvent event, aclrtEventRecordedStatus *status);
aclError aclrtSynchronizeEvent(aclrtEvent event);
aclError aclrtEventElapsedTime(float *ms, aclrtEvent startEvent, aclrtEvent endEvent);

/* Notifies. The flag must be 0. */
aclError aclrtCreateNotify(aclrtNotify *notify, uint64_t flag);
aclError aclrtDestroyNotify(aclrtNotify notify);
aclError aclrtRecordNotify(aclrtNotify notify, aclrtStream stream);

/* Memory. A device's memory ends with the device. */
typedef enum {
  ACL_MEM_MALLOC_HUGE_FIRST = 0,
  ACL_MEM_MALLOC_HUGE_ONLY = 1,
  ACL_MEM_MALLOC_NORMAL_ONLY = 2
} aclrtMemMallocPolicy;
typedef enum {
  ACL_MEMCPY_HOST_TO_HOST = 0,
  ACL_MEMCPY_HOST_TO_DEVICE = 1,
  ACL_MEMCPY_DEVICE_TO_HOST = 2,
  ACL_MEMCPY_DEVICE_TO_DEVICE = 3
} aclrtMemcpyKind;

aclError aclrtMalloc(void **devPtr, size_t size, aclrtMemMallocPolicy policy);
aclError aclrtFree(void *devPtr);
aclError aclrtMallocHost(void **hostPtr, size_t size);
aclError aclrtFreeHost(void *hostPtr);
/** Uses no stream: not ordered behind anything that is queued, on the default stream neither. */
aclError aclrtMemcpy(void *dst, size_t destMax, const void *src, size_t count, aclrtMemcpyKind kind);
aclError aclrtMemcpyAsync(void *dst, size_t destMax, const void *src, size_t count, aclrtMemcpyKind kind, aclrtStream stream);
aclError aclrtMemset(void *devPtr, size_t maxCount, int32_t value, size_t count);
aclError aclrtMemsetAsync(void *devPtr, size_t maxCount, int32_t value, size_t count, aclrtStream stream);

/*
 * Model instances: tasks recorded once on persistent streams, run many times. Between BuildBegin and BuildEnd what is
 * submitted to a bound stream is recorded and does not run. A stream is bound to one model at a time.
 */
#define ACL_MODEL_STREAM_FLAG_HEAD 0x00000000U    /* runs from the start of an execution */
#define ACL_MODEL_STREAM_FLAG_DEFAULT 0x7FFFFFFFU /* waits until it is activated */

/** The flag must be 0. */
aclError aclmdlRIBuildBegin(aclmdlRI *modelRI, uint32_t flag);
aclError aclmdlRIBindStream(aclmdlRI modelRI, aclrtStream stream, uint32_t flag);
/** Of at least one bound stream; BuildEnd ends the others. */
aclError aclmdlRIEndTask(aclmdlRI modelRI, aclrtStream stream);
/** `reserve` must be null. On failure the model is still building. */
aclError aclmdlRIBuildEnd(aclmdlRI modelRI, void *reserve);
/** Behind what the default stream holds, and until this execution is over. Milliseconds, -1: for ever. */
aclError aclmdlRIExecute(aclmdlRI modelRI, int32_t timeout);
/** One task of the stream; what fails in it, a synchronise of the stream reports. */
aclError aclmdlRIExecuteAsync(aclmdlRI modelRI, aclrtStream stream);
/**
 * Waits for executions that have begun; one that is queued is refused when its turn comes, and a synchronise reports it
 * (107000). The model cannot execute again; its recorded tasks end with the stream.
 */
aclError aclmdlRIUnbindStream(aclmdlRI modelRI, aclrtStream stream);
/** Unbinds what is bound, with the same wait and the same refusal. */
aclError aclmdlRIDestroy(aclmdlRI modelRI);

typedef enum {
  ACL_RT_EQUAL = 0,
  ACL_RT_NOT_EQUAL,
  ACL_RT_GREATER,
  ACL_RT_GREATER_OR_EQUAL,
  ACL_RT_LESS,
  ACL_RT_LESS_OR_EQUAL
} aclrtCondition;
typedef enum { ACL_RT_SWITCH_INT32 = 0, ACL_RT_SWITCH_INT64 = 1 } aclrtCompareDataType;

/**
 * Recorded on a bound stream while its model is building; the values are read when an execution gets there. If the
 * condition holds, trueStream of the same model starts at its first task and what follows on `stream` is left out; else
 * `stream` goes on. falseStream must be null.
 */
aclError aclrtSwitchStream(void *leftValue, aclrtCondition cond, void *rightValue, aclrtCompareDataType dataType,
                           aclrtStream trueStream, aclrtStream falseStream, aclrtStream stream);

#ifdef __cplusplus
}
#endif
