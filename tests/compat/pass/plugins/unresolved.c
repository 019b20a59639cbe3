/* SPDX-License-Identifier: Apache-2.0 */
/* A library that needs what nobody has. */
int no_such_function(void);
int calls(void) { return no_such_function(); }
