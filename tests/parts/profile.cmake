# SPDX-License-Identifier: Apache-2.0
mst_test(profile_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/../unit/profile_test.cpp DEPS profile READS_TREE)
mst_test(profile_mutation_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/../property/profile_mutation_test.cpp DEPS profile READS_TREE)
