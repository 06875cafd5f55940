export { sendBatch, BatchReportError, type BatchTransaction, type SendBatchOptions, type SentBatch } from './send-batch.js'
export { callsOf, send, sendTx, type SendOptions } from './send.js'
export { digestOf, relay, sign, signForToken, tokenCall, type RelayOptions } from './sign.js'
export { OutcomeUnknownError, ReportError, SendError, type Call, type SendErrorReason, type SendTxOptions } from './wallet.js'
