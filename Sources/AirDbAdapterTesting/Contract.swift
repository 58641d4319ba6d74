// The adapter contract that is checked: the one of this package, or AirDB's own.
#if UpstreamAirDbKit
  @_exported public import AirDbKit
#else
  @_exported public import AirDbContract
#endif
