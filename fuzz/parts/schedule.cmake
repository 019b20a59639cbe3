# SPDX-License-Identifier: Apache-2.0
mst_fuzzer(schedule_fuzz SOURCES ${CMAKE_CURRENT_LIST_DIR}/../schedule_fuzz.cpp
           PARTS assign/tasks.cpp schedule/order.cpp schedule/pairs.cpp schedule/parse.cpp schedule/print.cpp schedule/redundant.cpp
                 schedule/regions.cpp schedule/replay.cpp schedule/replay_control.cpp schedule/verify.cpp
           DEPS ops target)
