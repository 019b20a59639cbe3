/* SPDX-License-Identifier: Apache-2.0 */
/* A shared library that registers no passes here. */
int nothing(void) { return 0; }
