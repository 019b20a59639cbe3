// SPDX-License-Identifier: Apache-2.0
// A pass named PASS_NAME that does what the environment variable PASS_SCRIPT says.
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <stdexcept>
#include <string>
#include <thread>

#include <register/register_custom_pass.h>

using namespace ge;

static Status Scripted(const ConstGraphPtr& graph, StreamPassContext& context) {
  const char* text = std::getenv("PASS_SCRIPT");
  const std::string script = text == nullptr ? "" : text;
  if (const char* log = std::getenv("PASS_LOG")) std::ofstream(log, std::ios::app) << PASS_NAME << '\n';
  if (script == "fail") {
    context.SetErrorMessage("I do not like this graph");
    return static_cast<Status>(-2);
  }
  if (script == "throw") throw std::runtime_error("thrown by the pass");
  if (script == "exit") std::exit(0);
  if (script == "abort") std::abort();
  if (script == "thread") std::thread([] { throw std::runtime_error("thrown by a thread"); }).join();
  if (script == "print") std::cout << "from the pass\n";
  for (const GNode& node : graph->GetDirectNode()) {
    AscendString name;
    node.GetName(name);
    if (name != "a") continue;
    if (script == "move") context.SetStreamId(node, context.AllocateNextStreamId());
    if (script == "above") context.SetStreamId(node, context.GetCurrMaxStreamId() + 1);
  }
  return SUCCESS;
}
REGISTER_CUSTOM_PASS(PASS_NAME).CustomAllocateStreamPassFn(Scripted);
