// SPDX-License-Identifier: Apache-2.0
// The older name of the same header.
#pragma once

#include "register_custom_pass.h"
