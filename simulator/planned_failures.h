// Calls that tests want to fail (settings.h).
#pragma once

namespace tandem::simulator {

/// Whether it is one that fail_allocation() wants to fail; called once for each try, also for memory that is there
/// already.
bool allocation_fails();
/// The same of fail_host_allocation() and fail_instantiation().
/// @{
bool host_allocation_fails();
bool instantiation_fails();
/// @}

}  // namespace tandem::simulator
