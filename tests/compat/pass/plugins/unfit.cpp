// SPDX-License-Identifier: Apache-2.0
// Registrations that do not run, each for another reason, and one that does.
#include <register/register_custom_pass.h>

static ge::Status Edit(ge::GraphPtr&, ge::CustomPassContext&) { return ge::SUCCESS; }
static ge::Status Allocate(const ge::ConstGraphPtr&, ge::StreamPassContext&) { return ge::SUCCESS; }

REGISTER_CUSTOM_PASS("empty");
REGISTER_CUSTOM_PASS("edits").CustomPassFn(Edit);
REGISTER_CUSTOM_PASS("edits late").CustomPassFn(Edit).Stage(ge::CustomPassStage::kAfterAssignLogicStream);
REGISTER_CUSTOM_PASS("early").CustomAllocateStreamPassFn(Allocate).Stage(ge::CustomPassStage::kBeforeInferShape);
REGISTER_CUSTOM_PASS("two\nlines").CustomPassFn(Edit);
REGISTER_CUSTOM_PASS("good").CustomAllocateStreamPassFn(Allocate);
REGISTER_CUSTOM_PASS("good").CustomAllocateStreamPassFn(Allocate);
