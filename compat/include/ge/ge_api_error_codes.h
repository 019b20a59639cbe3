// SPDX-License-Identifier: Apache-2.0
// The same under the name that programs of the ecosystem include.
#pragma once

#include "ge_status.h"
