// SPDX-License-Identifier: Apache-2.0
// The public surface: the stages in pipeline order.
#pragma once

#include "millstream/assign/assignment.h"
#include "millstream/backend/backend.h"
#include "millstream/compile/compile.h"
#include "millstream/core/result.h"
#include "millstream/exec/executable.h"
#include "millstream/graph/graph.h"
#include "millstream/graph/text.h"
#include "millstream/import/import.h"
#include "millstream/memory/memory_plan.h"
#include "millstream/pass/load.h"
#include "millstream/schedule/schedule.h"
#include "millstream/sync/sync_plan.h"
#include "millstream/target/target.h"
#include "millstream/trace/trace.h"
