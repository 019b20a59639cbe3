/* SPDX-License-Identifier: Apache-2.0 */
/* A library of a later version of the interface. */
#include <register/mst_pass_abi.h>

static const mst_pass_entry* entry(size_t i) {
  (void)i;
  return 0;
}

const mst_plugin_desc* mst_plugin_query_v1(void) {
  static const mst_plugin_desc desc = {sizeof(mst_plugin_desc), 2, 0, 0, entry};
  return &desc;
}
