package upstream

// ResponseHeaders are the headers that are passed to clients.
var ResponseHeaders = responseHeaders
