package forward

// AnswerHeaders is the list of what core may say to a client.
var AnswerHeaders = answerHeaders
