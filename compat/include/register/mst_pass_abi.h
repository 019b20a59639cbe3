/* SPDX-License-Identifier: Apache-2.0 */
/* What a library with passes and the program that loads it say to each other. Plain C: no C++ object crosses, so the two need
 * neither one compiler nor one C++ library.
 *
 * The program looks up mst_plugin_query_v1 in the library, copies the entries, and calls `run` of each with a table of
 * functions. Structs only grow at their end: who reads one looks at struct_size first. A change that breaks this is a new
 * query symbol.
 *
 * Handles are numbers, never followed: one that is stale, of another run or null is answered by a failure. All of them, and
 * the texts and arrays they give, end when `run` returns. Where a function returns int32_t, 0 is success and -1 failure. */
#ifndef MST_PASS_ABI_H
#define MST_PASS_ABI_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define MST_PASS_ABI_MAJOR 1u
#define MST_PASS_ABI_MINOR 0u

typedef struct mst_graph mst_graph;
typedef struct mst_node mst_node;
typedef struct mst_stream_ctx mst_stream_ctx;

/** Not necessarily ended by a zero byte. */
typedef struct mst_str {
  const char* data;
  size_t size;
} mst_str;

/** An output of a node, or an input of one. node is null where there is none. */
typedef struct mst_port {
  const mst_node* node;
  int32_t index;
} mst_port;

/** Element types have the numbers of ONNX; 0 is unknown. */
typedef struct mst_desc {
  uint32_t struct_size;
  int32_t dtype;
  int32_t rank; /**< -1: not known */
} mst_desc;

typedef struct mst_tensor {
  uint32_t struct_size;
  int32_t dtype;
  size_t rank;
  const int64_t* dims;
  const void* data;
  size_t bytes;
} mst_tensor;

enum {
  MST_ATTR_INT = 1,
  MST_ATTR_FLOAT = 2,
  MST_ATTR_STRING = 3,
  MST_ATTR_INTS = 4,
  MST_ATTR_FLOATS = 5,
  MST_ATTR_STRINGS = 6, /**< read one by one with node_attr_string */
  MST_ATTR_TENSOR = 7
};

typedef struct mst_attr {
  uint32_t struct_size;
  int32_t kind; /**< says which of the members below count */
  int64_t i;
  float f;
  mst_str s;
  const int64_t* ints;
  const float* floats;
  size_t count; /**< of ints, floats or strings */
  mst_tensor tensor;
} mst_attr;

enum { MST_INPUTS = 0, MST_OUTPUTS = 1 };          /**< side of a node */
enum { MST_DIRECT_NODES = 0, MST_ALL_NODES = 1 };  /**< without and with the nodes of subgraphs */

typedef struct mst_host_api {
  uint32_t struct_size;
  uint32_t major;
  uint32_t minor;

  int32_t (*graph_name)(const mst_graph*, mst_str* name);
  /** In execution order; subgraphs behind the nodes that own them. */
  size_t (*graph_node_count)(const mst_graph*, int32_t which);
  const mst_node* (*graph_node)(const mst_graph*, int32_t which, size_t i);

  int32_t (*node_name)(const mst_node*, mst_str* name);
  int32_t (*node_type)(const mst_node*, mst_str* type);
  size_t (*node_port_count)(const mst_node*, int32_t side);
  /** What feeds an input. Failure only where there is no such input. */
  int32_t (*node_producer)(const mst_node*, size_t input, mst_port* from);
  size_t (*node_consumer_count)(const mst_node*, size_t output);
  int32_t (*node_consumer)(const mst_node*, size_t output, size_t i, mst_port* to);
  /** Control edges into the node (MST_INPUTS) or out of it. */
  size_t (*node_control_count)(const mst_node*, int32_t side);
  const mst_node* (*node_control)(const mst_node*, int32_t side, size_t i);
  /** Up to `capacity` dimensions go to dims, -1 for one that is not known. */
  int32_t (*node_desc)(const mst_node*, int32_t side, size_t port, mst_desc* desc, int64_t* dims, size_t capacity);
  int32_t (*node_port_name)(const mst_node*, int32_t side, size_t port, mst_str* name);
  /** Failure where the input is no constant. */
  int32_t (*node_constant)(const mst_node*, size_t input, mst_tensor* value);
  int32_t (*node_attr)(const mst_node*, mst_str name, mst_attr* value);
  int32_t (*node_attr_string)(const mst_node*, mst_str name, size_t i, mst_str* text);
  size_t (*node_subgraph_count)(const mst_node*);
  const mst_graph* (*node_subgraph)(const mst_node*, size_t i);

  int64_t (*ctx_next_stream)(mst_stream_ctx*);                          /**< -1: failure */
  int64_t (*ctx_max_stream)(const mst_stream_ctx*);                     /**< -1: none */
  int32_t (*ctx_set_stream)(mst_stream_ctx*, const mst_node*, int64_t);
  int64_t (*ctx_get_stream)(const mst_stream_ctx*, const mst_node*);    /**< -1: none */
  void (*ctx_set_error)(mst_stream_ctx*, mst_str message);
  int32_t (*ctx_option)(const mst_stream_ctx*, mst_str key, mst_str* value);
} mst_host_api;

/** Of mst_pass_entry.functions. */
enum { MST_PASS_ALLOCATES_STREAMS = 1, MST_PASS_EDITS_GRAPHS = 2 };

#define MST_STAGE_AFTER_ASSIGN_LOGIC_STREAM 2u
#define MST_STAGE_NOT_NAMED 0xFFFFFFFFu

typedef struct mst_pass_entry {
  uint32_t struct_size;
  uint32_t stage;
  mst_str name;
  void* self;
  /** 0 is success, everything else failure. It must not throw. Null where no stream function is set. */
  int32_t (*run)(void* self, const mst_host_api*, const mst_graph*, mst_stream_ctx*);
  uint32_t functions;
} mst_pass_entry;

typedef struct mst_plugin_desc {
  uint32_t struct_size;
  uint32_t major;
  uint32_t minor;
  size_t count;
  const mst_pass_entry* (*entry)(size_t i);
} mst_plugin_desc;

/** The symbol that a library with passes exports. */
typedef const mst_plugin_desc* (*mst_plugin_query)(void);
#define MST_PLUGIN_QUERY "mst_plugin_query_v1"

#ifdef __cplusplus
}
#endif

#endif
