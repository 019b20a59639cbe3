// SPDX-License-Identifier: Apache-2.0
// The steps of `lower`, one by one, for those who look at what lies between them.
#pragma once

#include "millstream/schedule/activate.h"      // IWYU pragma: export
#include "millstream/schedule/event_ids.h"     // IWYU pragma: export
#include "millstream/schedule/event_phases.h"  // IWYU pragma: export
#include "millstream/schedule/names.h"         // IWYU pragma: export
#include "millstream/schedule/split.h"         // IWYU pragma: export
